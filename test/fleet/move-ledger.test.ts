/** A ledger moves to PostgreSQL inside the test's process, and back. */
import { describeMove } from './move-suite.ts';
import { Pglite } from './pglite.ts';

describeMove(Pglite.start);
