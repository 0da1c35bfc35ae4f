/**
 * The end of a process with a damaged database. A restart may repair a first failure (memory, a
 * cable); after the second in a row the process ends with the command to restore.
 *
 *   whole --damage--> suspected (<data>/damaged; the process ends with 70)
 *   suspected --damage--> suspected, and the process ends with 78
 *   suspected --10 minutes without, or a clean end--> whole
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../proto/common/durable.ts';
import { DataError } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import type { CoreConfig } from '../config.ts';
import { startCheck } from '../store/check.ts';
import { damageError, isDatabaseDamage, wasNotClosed } from '../store/database-file.ts';
import { openPostgres } from '../store/server.ts';
import { openStore } from '../store/thread.ts';
import type { Store } from '../store/types.ts';

const MARK = 'damaged';
/** In milliseconds without damage. Ours: by then all frequently read rows have been read. */
const STABLE_MS = 600_000;

export type Damage = AsyncDisposable & {
  /**
   * The error with which the process ends: for the second damage in a row a DataError with the
   * command to restore; an error without damage is returned as it is.
   */
  judge(error: unknown): unknown;
  /**
   * Checks the whole database if the last process did not end cleanly: before the start continues
   * when damage is suspected, else concurrently. Rejects, or calls `onDamage`, with the damage.
   */
  check(onDamage: (error: Error) => void): Promise<void>;
  /** After a clean end: removes the suspicion. */
  clear(): void;
};

/** Call before the database is opened: its log shows whether the last end was clean. */
export function openDamage(dataDir: string, log: Log): Damage {
  const path = join(dataDir, MARK);
  const isSuspected = existsSync(path);
  const wasCut = wasNotClosed(dataDir);
  let verdict: Error | undefined;
  let stable: NodeJS.Timeout | undefined;
  let checking: ReturnType<typeof startCheck> | undefined;

  function clear(): void {
    if (verdict === undefined) rmSync(path, { force: true });
  }

  return {
    clear,
    judge(error) {
      if (verdict !== undefined) return verdict;
      if (!isDatabaseDamage(error)) return error;
      const problem = `the database of ${dataDir} is damaged (${error.message})`;
      const fix = `restore a backup: tabern restore BACKUP --data NEW_DIRECTORY, and start on that`;
      verdict = isSuspected ? new DataError(`${problem}: ${fix}`, { cause: error }) : error;
      if (!isSuspected) replaceFile(path, `${new Date().toISOString()} ${error.message}\n`);
      return verdict;
    },
    async check(onDamage) {
      stable = setTimeout(clear, STABLE_MS).unref();
      if (!isSuspected && !wasCut) return;
      checking = startCheck(dataDir);
      const found = (problems: string[]): void => {
        if (problems.length === 0) return;
        log.error({ problems }, 'the database is damaged');
        throw damageError(problems[0]);
      };
      const failed = (error: unknown): void => {
        log.warn({ err: error }, 'the database could not be checked for damage');
      };
      const checked = checking.problems.then(found, failed);
      if (isSuspected) await checked;
      else checked.catch(onDamage);
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(stable);
      await checking?.[Symbol.asyncDispose]();
    },
  };
}

type Config = Pick<CoreConfig, 'dataDir' | 'database' | 'durability' | 'crashAt'>;
type Deps = {
  onFatal: (error: Error) => void;
  damage: Damage;
  log: Log;
  opened: AsyncDisposableStack;
};

/** Opens the store, which `opened` closes, and checks it. A server checks its own database. */
export async function openChecked(config: Config, deps: Deps): Promise<Store> {
  const { onFatal, damage, log, opened } = deps;
  const { dataDir: dir, database, durability, crashAt } = config;
  const store =
    database === undefined
      ? await openStore({ dir, durability, crashAt, onFatal })
      : await openPostgres({ ...database, durability, crashAt, log });
  opened.defer(() => store.close());
  if (database !== undefined) return store;
  // ends the check first: the last process to close the database empties its log
  opened.use(damage);
  await damage.check(onFatal);
  return store;
}
