/** The rules of a fleet, with PostgreSQL inside the test process. */
import { Pglite } from './pglite.ts';
import { describeFleet } from './suite.ts';

describeFleet(Pglite.start);
