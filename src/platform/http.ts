/**
 * Node's modules for HTTP. Importing one also loads the client behind `fetch`, which more than doubles the start time of a process
 * (nodejs/node#59686); `require` does not. This file can go when an import no longer does that.
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const http = require('node:http') as typeof import('node:http');
export const https = require('node:https') as typeof import('node:https');
