-- Asks the targets of a file, one a line, in their order and with the headers of bench/load-generator.ts; prints one JSON document at the end.
local requests = {}
local at = 0

function init(args)
  for target in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("GET", target, {
      ["Host"] = "pagegate.internal:8080",
      ["User-Agent"] = "python-requests/2.32.3",
      ["Accept-Encoding"] = "gzip, deflate",
      ["Accept"] = "*/*",
      ["Connection"] = "keep-alive",
      ["X-API-Key"] = args[2],
    })
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local others = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('{"answered":%d,"others":%d,"elapsedMs":%.3f,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, others, summary.duration / 1000, latency:percentile(50), latency:percentile(99)))
end
