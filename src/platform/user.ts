/** Who runs this process, and how root acts as another user. */
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

/**
 * Takes the rights to files that another user has, with its groups, for all threads of this process; for root alone.
 *
 * @param gid the group of a user that the host has no name for
 * @returns gives them back
 * @throws the system's error where this process may not, as root of a container may not; nothing has changed then
 */
export function actAsUser(uid: number, gid: number): () => void {
  const ownGroup = process.getegid?.() ?? 0;
  const ownGroups = process.getgroups?.() ?? [];
  const asRoot = (): void => {
    process.seteuid?.(0);
    process.setegid?.(ownGroup);
    process.setgroups?.(ownGroups);
  };
  try {
    takeGroupsOf(uid, gid);
    process.seteuid?.(uid);
  } catch (error) {
    asRoot();
    throw error;
  }
  return asRoot;
}

/** Missing in @types/node 24.19. */
type Initgroups = NodeJS.Process & { initgroups(user: string, extraGroup: number): void };

function takeGroupsOf(uid: number, gid: number): void {
  const known = knownUser(uid);
  if (known === undefined) process.setgroups?.([gid]);
  else (process as Initgroups).initgroups(known.username, known.gid);
  process.setegid?.(known?.gid ?? gid);
}

/** What the host knows of a user; undefined where it has no name for it. Only the effective user can be asked for. */
function knownUser(uid: number): { readonly username: string; readonly gid: number } | undefined {
  process.seteuid?.(uid);
  try {
    return userInfo();
  } catch {
    return undefined;
  } finally {
    process.seteuid?.(0);
  }
}
