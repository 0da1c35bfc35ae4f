/** What a tool of the data directory says where the database is in PostgreSQL. */
import { Fault } from '../../../proto/rpc/errors.ts';

export function inPostgres(): Fault {
  const message =
    'The database is in PostgreSQL: back it up with `pg_dump --format=custom --file=tabern.dump ' +
    '"$TABERN_DATABASE_URL"`, then copy the keys folder of the data directory and the blobs.';
  return new Fault('FEATURE_DISABLED', message);
}
