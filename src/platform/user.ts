/** Who runs this process. */
import { userInfo } from 'node:os';

/**
 * The name of the user who runs this process, for the audit. A container is often started with the number of a user that its host has no
 * name for; then it is that number.
 */
export function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.geteuid?.()}`;
  }
}
