/**
 * What a damaged database ends in. A first failure may be cured by a restart (memory, a cable); the
 * second in a row is not, and the process says how to restore.
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
import { openStore } from '../store/thread.ts';
import type { Store } from '../store/types.ts';

const MARK = 'damaged';
/** In milliseconds without damage. Ours: whatever is read often has been read by then. */
const STABLE_MS = 600_000;

export type Damage = AsyncDisposable & {
  /**
   * The error to end with: a DataError, with the line to restore by, for the second damage in a
   * row. One that has nothing to do with damage stays what it is.
   */
  judge(error: unknown): unknown;
  /**
   * Looks at the whole database where the last end was not clean: before the start goes on when it
   * is suspected, else beside it. Rejects, or calls `onDamage`, with what it found.
   */
  check(onDamage: (error: Error) => void): Promise<void>;
  /** After a clean end: nothing is suspected any more. */
  clear(): void;
};

/** Before the database is opened: its log says whether the last end was clean. */
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
      const says = `the database of ${dataDir} is damaged (${error.message})`;
      const fix = `restore a backup: tabern restore BACKUP --data NEW_DIRECTORY, and start on that`;
      verdict = isSuspected ? new DataError(`${says}: ${fix}`, { cause: error }) : error;
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
      const looked = checking.problems.then(found, failed);
      if (isSuspected) await looked;
      else looked.catch(onDamage);
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(stable);
      await checking?.[Symbol.asyncDispose]();
    },
  };
}

/** The store, closed with `opened`; looked at as `check` says. */
export async function openChecked(
  { dataDir: dir, durability, crashAt }: Pick<CoreConfig, 'dataDir' | 'durability' | 'crashAt'>,
  parts: { onFatal: (error: Error) => void; damage: Damage; opened: AsyncDisposableStack },
): Promise<Store> {
  const { onFatal, damage, opened } = parts;
  const store = await openStore({ dir, durability, crashAt, onFatal });
  opened.defer(() => store.close());
  opened.use(damage); // its check ends first: the last who closes the database empties its log
  await damage.check(onFatal);
  return store;
}
