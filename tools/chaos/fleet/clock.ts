/**
 * Makes a node's clock wrong. NODE_OPTIONS loads this file into all processes of the node. A file has the clock offset in milliseconds, as a
 * float of eight bytes. All processes see a change at the same moment, as they do on a real host.
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
