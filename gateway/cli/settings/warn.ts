/** Warns of variables that look like settings and are none; nothing else is done about them. */
import type { Env } from '../../../proto/common/env.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import { unknownVariables } from '../../../proto/common/settings/unknown.ts';
import type { Command } from '../command.ts';

/** A part of the service warns in its log, any other command on stderr. */
export async function warnOfUnknown({ kind, usage }: Command, env: Env): Promise<void> {
  // a runner that `tabern serve` started has its variables, of which that has warned
  if (kind === 'local' || (usage === 'runner' && process.connected)) return;
  const warnings = unknownVariables(env);
  if (warnings.length === 0) return;
  if (kind !== 'role') {
    for (const warning of warnings) process.stderr.write(`tabern: ${warning}\n`);
    return;
  }
  const { openLog } = await import('../../../proto/common/log.ts');
  const log = openLog({ role: usage, level: readSetting(env, 'LOG_LEVEL') });
  for (const warning of warnings) log.warn(warning);
}
