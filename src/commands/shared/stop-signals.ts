/** What Ctrl-C and termination signals ask for: the first to stop, a later one to end at once. */
import { EXIT } from '../../errors.ts';

/** `timeout` and other wrappers send a signal to the program and again to its group: within this time it is the same one. */
const SAME_SIGNAL_MS = 500;

/** A listener for signals: `stop` at the first one, an end of the process at one that comes later. */
export function stopAtFirst(stop: () => void): () => void {
  let firstMs: number | undefined;
  return () => {
    if (firstMs === undefined) {
      firstMs = performance.now();
      stop();
    } else if (performance.now() - firstMs >= SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
  };
}
