/**
 * Node's modules for HTTP. `import` of one loads the client behind `fetch` as well, which more than doubles what a process takes to start
 * (nodejs/node#59686); `require` does not. Once an import no longer does, this file can go.
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const http = require('node:http') as typeof import('node:http');
export const https = require('node:https') as typeof import('node:https');
