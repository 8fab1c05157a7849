/** SQLite, for the modules that keep a file of their own. The only import of better-sqlite3. */
import Sqlite from 'better-sqlite3';

export { Sqlite };
export type Database = Sqlite.Database;
