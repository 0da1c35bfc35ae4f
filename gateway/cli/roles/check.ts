/** What a new program checks while the running one serves, before it takes over. */
import type { Env } from '../../../proto/common/env.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';

/** Settings that only one runner of a machine can have; two work side by side for a while. */
const OF_ONE_RUNNER = ['RUNNER_ID', 'RUNNER_LISTEN'] as const;

/**
 * The database's version, and what a runner needs, a Chrome in its sandbox included. Also loads the
 * service: clients wait from the moment when the old one closes until the new one serves.
 */
export async function checkProgram(env: Env): Promise<void> {
  const taken = OF_ONE_RUNNER.find((name) => readSetting(env, name) !== undefined);
  if (taken !== undefined) {
    const why = `TABERN_${taken} is that of one runner, and the old one is kept`;
    throw new Exit(EXIT.config, `${why}: restart the service instead`);
  }
  const { checkNewer } = await import('../../../core/maintenance/doctor.ts');
  checkNewer(env);
  const { checkMachine } = await import('../../../runner/machine/doctor.ts');
  for await (const { level, check, says } of checkMachine(env)) {
    if (level === 'fail') throw new Exit(EXIT.operator, `${check}: ${says}`);
  }
  await import('./service.ts');
  if (readSetting(env, 'DATABASE_URL') !== undefined) {
    const { loadPostgres } = await import('../../../core/main.ts');
    await loadPostgres();
  }
}
