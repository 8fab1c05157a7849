"""The addon of the mitmproxy proxy, with requests built by mitmproxy that no client would send."""
import asyncio
import pathlib
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "tools/integrations/mitmproxy")]

from mitmproxy.test import tflow  # noqa: E402
from pagegate_mitmproxy import Pagegate  # noqa: E402
from worlds import KEY, Judge  # noqa: E402

from pagegate_guard import Guard  # noqa: E402


class Addon(unittest.TestCase):
    def setUp(self):
        self.judge = Judge()
        self.addCleanup(self.judge.close)
        self.guard = Guard(self.judge.url, key=KEY, timeout_seconds=60)
        self.addon = Pagegate(self.guard)
        self.addCleanup(self.addon.done)

    def flow(self, **changes):
        flow = tflow.tflow()
        flow.client_conn.sni = None
        flow.request.host, flow.request.port, flow.request.scheme, flow.request.path = "good.example.com", 80, "http", "/ok"
        flow.request.headers["host"] = "good.example.com"
        flow.request.headers["content-length"] = "0"
        for name, value in changes.items():
            setattr(flow.request, name, value)
        return flow

    def headers(self, flow):
        asyncio.run(self.addon.requestheaders(flow))
        return flow.response and flow.response.status_code

    def test_an_allowed_request_passes(self):
        self.assertIsNone(self.headers(self.flow()))
        self.assertEqual(self.judge.asked, ["GET http://good.example.com/ok"])

    def test_a_failure_of_any_kind_refuses(self):
        for failure in (ZeroDivisionError, asyncio.CancelledError, KeyboardInterrupt, RecursionError):
            for place in ("_enforce",):
                flow = self.flow()
                with unittest.mock.patch.object(self.addon, place, side_effect=failure):
                    self.assertRaises(failure, self.headers, flow)
                self.assertEqual(flow.response.status_code, 403)
                self.assertIn(b"guard/internal", flow.response.content)
                self.assertFalse(flow.request.stream)

    def test_a_path_that_would_change_the_target(self):
        for path in (":8080/ok", "@denied.example.com/", ".denied.example.com/", "ok", "*", "", "//", "\\x"):
            flow = self.flow(path=path)
            if path == "//":
                self.assertIsNone(self.headers(flow))
            else:
                self.assertEqual(self.headers(flow), 403, path)
        self.assertEqual(self.judge.asked, ["GET http://good.example.com//"])

    def test_an_earlier_response_is_removed(self):
        flow = self.flow()
        flow.response = tflow.tresp()
        self.assertIsNone(self.headers(flow))

    def test_an_upgrade_is_a_websocket_only_with_get(self):
        opening = {"connection": "keep-alive, Upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
        for path, method, left_out, asked in (
            ("/ok-1", "GET", None, ["POST"]),
            ("/ok-2", "DELETE", None, ["DELETE"]),
            ("/ok-3", "GET", "connection", ["GET"]),
            ("/ok-4", "GET", "sec-websocket-key", ["GET"]),
        ):
            flow = self.flow(method=method, path=path)
            for name in opening:
                if name != left_out:
                    flow.request.headers[name] = opening[name]
            self.judge.asked.clear()
            self.headers(flow)
            self.assertEqual([line.split(" ")[0] for line in self.judge.asked], asked)
            self.assertEqual("upgrade" in flow.request.headers, asked == ["POST"])
            self.assertEqual("sec-websocket-version" in flow.request.headers, asked == ["POST"])

    def test_an_upgrade_hides_no_other_method(self):
        flow = self.flow(method="PUT")
        flow.request.headers["upgrade"] = "websocket"
        flow.request.headers["x-http-method-override"] = "DELETE"
        self.headers(flow)
        self.assertLessEqual({line.split(" ")[0] for line in self.judge.asked}, {"PUT", "DELETE"})
        self.assertNotEqual(self.judge.asked, [])

    def test_an_underscore_hides_no_header(self):
        flow = self.flow()
        flow.request.headers["X_Original-URL"] = "/login"
        flow.request.headers["X_HTTP_Method_Override"] = "DELETE"
        self.headers(flow)
        self.assertNotIn("x_original-url", flow.request.headers)
        self.assertEqual([line.split(" ")[0] for line in self.judge.asked], ["GET", "DELETE"])

    def test_headers_are_forwarded_in_an_unambiguous_form(self):
        for length, sent in (("+5", "5"), ("0_5", "5"), ("005", "5")):
            flow = self.flow()
            flow.request.headers["content-length"] = length
            flow.request.headers["x-a"] = "b\rX-Original-URL: /denied"
            self.assertIsNone(self.headers(flow))
            self.assertEqual(flow.request.headers.get_all("content-length"), [sent])
            self.assertEqual(flow.request.headers["x-a"], "b X-Original-URL: /denied")

    def test_no_connection_without_a_check_of_addresses(self):
        async def connect():
            data = unittest.mock.Mock()
            data.server.address, data.server.transport_protocol, data.server.via = ("good.example.com", 80), "tcp", None
            data.server.error = None
            self.addon.server_connect(data)
            return data.server.error

        self.assertEqual(asyncio.run(connect()), "addresses are not checked")


if __name__ == "__main__":
    unittest.main()
