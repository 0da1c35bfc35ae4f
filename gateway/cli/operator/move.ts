/**
 * `tabern move`: uploads the files of a data directory to a bucket (--s3), then takes its database
 * over to PostgreSQL (--to, or TABERN_DATABASE_URL, which other users of the machine cannot read).
 */
import { noAccess } from '../../../proto/common/durable.ts';
import { ConfigError, type Env } from '../../../proto/common/env.ts';
import { openProgress, type Progress } from '../../../proto/terminal/progress.ts';
import { sizeText } from '../../../proto/terminal/size.ts';
import { EXIT, Exit, endedBySignal } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { placeOf } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

type Moved = { bucket: string; files: number; bytes: number; damaged: string[]; kept: string };
type Move = (
  env: Env,
  options: {
    signal: AbortSignal;
    progress: { begun(totalBytes: number): void; uploaded(bytes: number): void };
  },
) => Promise<Moved>;

type MovedDatabase = { tables: number; rows: number; kept: string };
type MoveDatabase = (
  env: Env,
  options: { signal: AbortSignal; moved: (rows: number) => void },
) => Promise<MovedDatabase>;

export async function move(
  given: Given,
  moves: { env: Env; moveBlobs: Move; moveToPostgres: MoveDatabase },
): Promise<number> {
  const { data, s3, to } = given;
  const env = {
    ...moves.env,
    ...(typeof data === 'string' && { TABERN_DATA: data }),
    ...(typeof s3 === 'string' && { TABERN_BLOBS: s3 }),
    ...(typeof to === 'string' && { TABERN_DATABASE_URL: to }),
  };
  const isDatabase = env['TABERN_DATABASE_URL'] !== undefined;
  const isFiles = env['TABERN_BLOBS'] !== undefined || !isDatabase;
  const { dataDir } = placeOf(given, env);
  const signal = endedBySignal('the move is not complete: the same command continues it');
  try {
    const isWhole =
      !isFiles || (await moveFiles(given, { env, signal, moveBlobs: moves.moveBlobs }));
    if (isDatabase) await moveRows(given, { env, signal, moveToPostgres: moves.moveToPostgres });
    return isWhole ? 0 : EXIT.failed;
  } catch (error) {
    const denied = noAccess(error instanceof Exit ? error.cause : error, dataDir);
    throw denied === undefined ? error : new Exit(EXIT.config, denied, error);
  } finally {
    signal.throwIfAborted(); // the result of the failed step is not needed
  }
}

type Step = { env: Env; signal: AbortSignal };

/** False when files were damaged. */
async function moveFiles(
  given: Given,
  { env, signal, moveBlobs }: Step & { moveBlobs: Move },
): Promise<boolean> {
  let shown: Progress | undefined;
  const progress = {
    begun(totalBytes: number) {
      shown = openProgress('uploaded', totalBytes);
    },
    uploaded: (bytes: number) => shown?.add(bytes),
  };
  try {
    const moved = await moveBlobs(env, { signal, progress });
    shown?.end();
    report(moved, given);
    return moved.damaged.length === 0;
  } finally {
    shown?.end();
  }
}

async function moveRows(
  given: Given,
  { env, signal, moveToPostgres }: Step & { moveToPostgres: MoveDatabase },
): Promise<void> {
  const moved = await moveToPostgres(env, { signal, moved: () => {} }).catch((error: Error) => {
    if (error instanceof ConfigError) throw error;
    throw new Exit(EXIT.failed, `the database was not moved: ${error.message}`, error);
  });
  answer(given, moved, () => {
    print(`${moved.rows} rows of ${moved.tables} tables`);
    note('the database is in PostgreSQL: set TABERN_DATABASE_URL to it');
  });
  note(`remove ${moved.kept} when the service runs as it should`);
}

function report(moved: Moved, given: Given): void {
  answer(given, moved, () => {
    print(moved.bucket);
    note(
      `${moved.files} files of ${sizeText(moved.bytes)} are in the bucket: set TABERN_BLOBS to it`,
    );
  });
  for (const id of moved.damaged) {
    note(`warning: the file of blob ${id} was missing or damaged; requests for it fail`);
  }
  if (moved.kept !== '') note(`remove ${moved.kept} when the service runs as it should`);
}
