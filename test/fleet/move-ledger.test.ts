/** A ledger moves to PostgreSQL inside the test process, and back. */
import { describeMove } from './move-suite.ts';
import { Pglite } from './pglite.ts';

describeMove(Pglite.start);
