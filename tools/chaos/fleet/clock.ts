/**
 * Loaded into all processes of a node by NODE_OPTIONS: the node's clock is as wrong as a file says, eight bytes with the milliseconds. All
 * its processes see a change at the same moment, as they do on a host.
 */
import { openSync, readSync } from 'node:fs';

const file = process.env['CHAOS_CLOCK'];
if (file !== undefined) {
  const fd = openSync(file, 'r');
  const offset = new Float64Array(1);
  const now = Date.now;
  const wrong = (): number => {
    readSync(fd, offset, 0, 8, 0);
    return now() + offset[0]!;
  };
  Date.now = wrong;
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [wrong()] : args, self) as Date,
  });
}
