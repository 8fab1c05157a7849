/** Actions on users. Each asks for confirmation, describes what will happen, and uses the same code as the command line. */
import { counted } from '../../../counted.ts';
import type { Session } from '../../store/sessions.ts';
import type { User, Users } from '../../store/users.ts';
import type { Notice } from '../../web/route.ts';

export interface UserActionInput {
  readonly users: Users;
  readonly user: User;
  /** The session of the operator who makes the change. */
  readonly session: Session;
  /** Returns the URL of a link with this token. */
  readonly linkOf: (token: string) => string;
}

export interface UserAction {
  /** Its segment of the URL. */
  readonly id: string;
  readonly title: string;
  readonly isDangerous?: boolean;
  /** Whether the operator must enter their own password: for every action that changes who may sign in, or with which role. */
  readonly needsPassword: boolean;
  /** Whether the user is not an operator afterwards: at least one operator must be left. */
  readonly endsOperator?: boolean;
  /** Whether the action is possible for a user in the current state. */
  readonly applies: (user: User, isOwn: boolean) => boolean;
  /** Describes what will happen. */
  readonly says: (user: User, isOwn: boolean) => string;
  readonly run: (input: UserActionInput) => Notice;
}

/** Returns the notice with a new link. It is shown only once; whoever has the link can sign in. */
export const invited = (text: string, link: string): Notice => ({
  tone: 'good',
  text: `${text} This link signs in once, within an hour:`,
  secret: link,
  advice: 'It is shown only once. Pass it on where nobody else can read it: whoever opens it first signs in.',
});

export const USER_ACTIONS: readonly UserAction[] = [
  {
    id: 'make-operator',
    title: 'Make an operator',
    needsPassword: true,
    applies: ({ role }) => role === 'viewer',
    says: ({ name }) =>
      `${name} may change accounts, keys, generations and users from now on. Open sessions of ${name} end: the next sign-in has the new role.`,
    run: ({ users, user: { name }, session }) => {
      users.setRole(name, 'operator', session.name);
      return { tone: 'good', text: `${name} is an operator.` };
    },
  },
  {
    id: 'make-viewer',
    title: 'Make a viewer',
    needsPassword: true,
    endsOperator: true,
    applies: ({ role }) => role === 'operator',
    says: ({ name }, isOwn) =>
      isOwn
        ? 'From now on you can only look, and you are signed out. Only another operator, or the command line, can give you the role back.'
        : `${name} can only look from now on. Open sessions of ${name} end: the next sign-in has the new role.`,
    run: ({ users, user: { name }, session }) => {
      users.setRole(name, 'viewer', session.name);
      return { tone: 'good', text: `${name} is a viewer.` };
    },
  },
  {
    id: 'link',
    title: 'Make a link to sign in',
    needsPassword: true,
    applies: () => true,
    says: ({ name }) =>
      `You get a link that signs ${name} in once, within an hour. Whoever has it signs in as ${name}; the audit notes that you made it.`,
    run: ({ users, user: { name }, session, linkOf }) =>
      invited(`A link for ${name} is made.`, linkOf(users.createLink(name, session.name))),
  },
  {
    id: 'sign-out',
    title: 'Sign out everywhere',
    needsPassword: false,
    applies: () => true,
    says: ({ name }, isOwn) =>
      isOwn
        ? 'All your sessions end except this one, and so do links that were made for you. Your password stays.'
        : `Every session of ${name} ends now, and so does every unused link. The password of ${name} stays: reset it if somebody else knows it.`,
    run: ({ users, user: { name }, session }) => {
      const ended = users.signOut(name, session.name, session.hash);
      return { tone: 'good', text: `${counted(ended, 'session')} of ${name} ended.` };
    },
  },
  {
    id: 'reset',
    title: 'Reset the password',
    needsPassword: true,
    applies: (_, isOwn) => !isOwn,
    says: ({ name }) =>
      `The password of ${name} is removed, and open sessions and links end. You get a link that signs ${name} in once, to set another password.`,
    run: ({ users, user: { name }, session, linkOf }) => {
      users.reset(name, session.name);
      return invited(`${name} is signed out and has no password.`, linkOf(users.createLink(name, session.name)));
    },
  },
  {
    id: 'remove',
    title: 'Remove the user',
    isDangerous: true,
    needsPassword: true,
    endsOperator: true,
    applies: () => true,
    says: ({ name }, isOwn) =>
      `${isOwn ? 'You are signed out, and' : `${name} is signed out, and`} can no longer sign in. What was done under this name stays in the audit.`,
    run: ({ users, user: { name }, session }) => {
      users.remove(name, session.name);
      return { tone: 'good', text: `${name} is removed.` };
    },
  },
];
