/** The roles of a session. */

/** An operator may change things, a viewer may only look. */
export type UserRole = 'operator' | 'viewer';

/** An account sees only itself: it signed in with its API key. */
export type Role = UserRole | 'account';

export const ROLES: readonly UserRole[] = ['operator', 'viewer'];
