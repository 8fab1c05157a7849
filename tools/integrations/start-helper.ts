/** The start of the helpers in this folder. */

/** Exit code of a helper that cannot start with its options. */
const EXIT_NOT_STARTED = 2;

/** Runs a helper. If it cannot start, such as with a wrong option or key file, prints the reason in one line and exits. */
export function startHelper(name: string, main: (fail: (error: Error) => never) => void): void {
  const fail = (error: Error): never => {
    process.stderr.write(`${name}: ${error.message.replaceAll(/\s+/g, ' ')}\n`);
    process.exit(EXIT_NOT_STARTED);
  };
  try {
    main(fail);
  } catch (error) {
    fail(error as Error);
  }
}
