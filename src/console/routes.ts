/** All pages and actions of the console, with the roles that may use them. The tests walk through this list. */
import { ACCOUNT_ROUTES } from './pages/accounts.ts';
import { AUDIT_ROUTES } from './pages/audit.ts';
import { DECISION_ROUTES } from './pages/decisions.ts';
import { GENERATION_ROUTES } from './pages/generations.ts';
import { HEALTH_ROUTES } from './pages/health.ts';
import { OVERVIEW_ROUTES } from './pages/overview.ts';
import { OWN_ACCOUNT_ROUTES } from './pages/own-account.ts';
import { REFRESH_ROUTES } from './pages/refresh.ts';
import { TRY_ROUTES } from './pages/try.ts';
import { SIGN_IN_ROUTES } from './pages/users/sign-in.ts';
import { USER_ROUTES } from './pages/users/users.ts';
import { YOU_ROUTES } from './pages/users/you.ts';
import type { Route } from './web/route.ts';

export const ROUTES: readonly Route[] = [
  ...SIGN_IN_ROUTES,
  ...YOU_ROUTES,
  ...OVERVIEW_ROUTES,
  ...HEALTH_ROUTES,
  ...AUDIT_ROUTES,
  ...DECISION_ROUTES,
  ...TRY_ROUTES,
  ...GENERATION_ROUTES,
  ...REFRESH_ROUTES,
  ...ACCOUNT_ROUTES,
  ...OWN_ACCOUNT_ROUTES,
  ...USER_ROUTES,
];
