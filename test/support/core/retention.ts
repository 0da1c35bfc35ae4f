/** One pass of retention over some rows of its table. */

import { readCoreConfig } from '../../../core/config.ts';
import { purgeOld } from '../../../core/maintenance/retention.ts';
import { retentionTable } from '../../../core/maintenance/retention-table.ts';
import type { Store } from '../../../core/store/types.ts';
import { openLog } from '../../../proto/common/log.ts';

/** The rows by name; `keptMs` replaces the default of each. */
export async function purgeAt(
  at: number,
  names: readonly string[],
  options: {
    store: Partial<Store>;
    remove?: (id: string) => Promise<void>;
    keptMs?: Readonly<Record<string, number>>;
    signal?: AbortSignal;
  },
): Promise<void> {
  const { remove = async () => {}, keptMs = {}, signal = new AbortController().signal } = options;
  const parts = { store: options.store as Store, files: { remove } };
  const table = retentionTable(readCoreConfig({}), parts);
  const unknown = names.filter((name) => !table.some((row) => row.name === name));
  if (unknown.length > 0) throw new Error(`no row of retention: ${unknown}`);
  const rows = table.filter(({ name }) => names.includes(name));
  const errors: unknown[] = [];
  const log = openLog({ role: 'test', level: 'silent' });
  log.error = ((facts: { err: unknown }) => void errors.push(facts.err)) as typeof log.error;
  const changed = rows.map((row) => ({ ...row, keptMs: keptMs[row.name] ?? row.keptMs }));
  await purgeOld(changed, { log, now: () => at, isHeld: () => false }, signal);
  if (errors.length > 0) throw errors[0];
}
