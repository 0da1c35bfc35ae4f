/**
 * Opens the jail that everything untrusted runs in: a function's host and Chrome. The ladder is
 * tried from the top and fails closed: with no backend that really works here the runner does not
 * start, unless the operator says `none`.
 */
import { tmpdir } from 'node:os';
import type { Log } from '../../proto/common/log.ts';
import { bwrapBackend } from './backends/bwrap.ts';
import { landlockBackend } from './backends/landlock.ts';
import { openNone } from './backends/none.ts';
import type { Groups } from './cgroups/cgroups.ts';
import { type Backend, type Jail, JailError } from './jail.ts';
import { withMemoryLimit } from './memory-limit.ts';

/** Best first. */
const BACKENDS: readonly Backend[] = [bwrapBackend, landlockBackend];

/** Opens the best backend that works; each is tried once with a real process. Throws JailError. */
export async function openJail(options: {
  sandbox: 'auto' | 'bwrap' | 'landlock' | 'none';
  log: Log;
  /** Where a backend makes what it must clean up; who owns it sweeps it. The system's when absent. */
  tmpDir?: string;
  /** Absent: no jail has a cgroup of its own. */
  groups?: Groups | undefined;
}): Promise<Jail> {
  const { sandbox, log, tmpDir = tmpdir(), groups } = options;
  if (sandbox === 'none') {
    log.warn('sandbox is off: functions and Chrome can read and reach all that this user can');
    return withMemoryLimit(openNone(log, tmpDir), groups);
  }
  const reasons: string[] = [];
  for (const backend of BACKENDS.filter(({ level }) => sandbox === 'auto' || level === sandbox)) {
    const opened = await backend.open(log, tmpDir);
    if (!('why' in opened)) {
      const why = reasons.join('; ');
      if (why !== '') log.warn({ why }, `no better sandbox than ${opened.level} works here`);
      return withMemoryLimit(opened, groups);
    }
    reasons.push(`${backend.level}: ${opened.why}`);
  }
  throw new JailError(
    `no sandbox works here (${reasons.join('; ')}). Install bubblewrap (apt install bubblewrap) ` +
      'and allow user namespaces, or run a kernel with Landlock (6.12), or set ' +
      'TABERN_SANDBOX=none at your own risk: functions and pages can then read this machine',
  );
}
