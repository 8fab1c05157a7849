/** One worker of the real server with the meter of a mode. Arguments: port, mode, configuration file. */
import { ConnectionCount } from '../../src/server/process/connections.ts';
import { Listener } from '../../src/server/process/listener.ts';
import { openBenchHandler } from '../handler.ts';
import type { Mode } from './meters.ts';

// Registered first: otherwise a bench that ends while the server starts would leave it running.
process.on('disconnect', () => process.exit(0));
const [port, mode, configFile] = process.argv.slice(2) as [string, Mode, string];
const connections = new ConnectionCount({ most: 10_000 });
const { handle, meter, ledgerWriter } = await openBenchHandler(mode, configFile, connections);
await new Listener({ handle, connections }).listen('127.0.0.1', Number(port));
process.on('message', (message) => {
  if (message === 'health') process.send?.({ ...meter.health(), ledgerWriter });
});
process.send?.({ listening: true, ledgerWriter });
