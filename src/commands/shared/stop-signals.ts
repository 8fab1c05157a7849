/** How Ctrl-C and termination signals are handled: the first one stops the work, a later one ends the process at once. */
import { EXIT } from '../../errors.ts';

/** `timeout` and other wrappers send a signal to the program and again to its process group. Within this time both count as one. */
const SAME_SIGNAL_MS = 500;

/** Returns a signal listener that calls `stop` at the first signal and ends the process at a later one. */
export function stopAtFirst(stop: () => void): () => void {
  let firstMs: number | undefined;
  return () => {
    if (firstMs === undefined) {
      firstMs = performance.now();
      stop();
    } else if (performance.now() - firstMs >= SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
  };
}
