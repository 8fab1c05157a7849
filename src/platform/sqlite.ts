/** SQLite, for the modules that have their own database file. Only this file imports better-sqlite3. */
import Sqlite from 'better-sqlite3';

export { Sqlite };
export type Database = Sqlite.Database;
