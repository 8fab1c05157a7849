/** What somebody who is signed in may do. */

/** An operator changes, a viewer looks. */
export type UserRole = 'operator' | 'viewer';

/** An account sees only itself: the one whose API key was signed in with. */
export type Role = UserRole | 'account';

export const ROLES: readonly UserRole[] = ['operator', 'viewer'];
