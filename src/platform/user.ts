/** The user who runs this process, and acting as another user when it is root. */
import { userInfo } from 'node:os';

/**
 * Returns the name of the user who runs this process, for the audit table. A container is often started with a user id that has no name; then
 * the id is used instead.
 */
export function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.geteuid?.()}`;
  }
}

/**
 * Takes another user's rights to files, including those of its groups, for all threads of this process. Only root may call this.
 *
 * @param gid the group to use if the user id has no name on this host
 * @returns a function that restores root's rights
 * @throws the system's error if this process may not do that, like root in some containers; nothing has changed then
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

/** Looks a user up by id; undefined if the id has no name. Node can only look up the effective user, so this switches to it briefly. */
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
