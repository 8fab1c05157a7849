/** The program of the site that the guard bench fetches from: a fixed body on every path. It sends its port, and ends with its parent. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const BODY = Buffer.alloc(2_000, 'x');

const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': BODY.length }).end(BODY);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit(0));
