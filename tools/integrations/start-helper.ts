/** How the helpers beside this file begin. */

/** Exit code of a helper that cannot be started as it was told. */
const EXIT_NOT_STARTED = 2;

/** Runs a helper; what keeps it from starting, such as a wrong option or key file, ends it in one line that says so. */
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
