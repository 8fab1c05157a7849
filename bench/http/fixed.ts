/**
 * The upper limit that the program is compared with: the same transport, which reads nothing of a request and always answers the same bytes.
 * Arguments: port, and two PEM files or none. Its parent sends the headers and the size of the body, each time they change.
 */
import { loadUws } from '../../src/server/uws.ts';

export interface FixedAnswer {
  /** Pairs of name and value. */
  readonly headers: readonly (readonly [string, string])[];
  readonly bodySize: number;
}

let headers: FixedAnswer['headers'] = [];
let body = Buffer.alloc(0);

process.on('message', (answer: FixedAnswer) => {
  ({ headers } = answer);
  body = Buffer.from(JSON.stringify({ fixed: '' }).padEnd(answer.bodySize, ' '));
  // The load generator recognizes the end of an answer by its closing brace.
  body.write('}', body.length - 1);
  process.send?.('ready');
});
process.on('disconnect', () => process.exit(0));

const [port, certificate, key] = process.argv.slice(2);
const uws = loadUws();
const app =
  certificate === undefined || key === undefined
    ? uws.App()
    : uws.SSLApp({ cert_file_name: certificate, key_file_name: key });
app.any('/*', (res) => {
  for (const [name, value] of headers) res.writeHeader(name, value);
  res.end(body);
});
app.listen('127.0.0.1', Number(port), (socket) => {
  if (socket === false) throw new Error(`Port ${port} is taken.`);
  process.send?.('listening');
});
