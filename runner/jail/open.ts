/**
 * Selects the sandbox for all untrusted code: function hosts, builds and Chrome. Backends are tried
 * in order and the selection fails closed: without a working backend the runner does not start,
 * unless the operator sets `none`.
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

/** Opens the best backend that works; each is probed with a real process. Throws JailError. */
export async function openJail(options: {
  sandbox: 'auto' | 'bwrap' | 'landlock' | 'none';
  log: Log;
  /** Where a backend creates temporary files; the caller sweeps it. The system's when absent. */
  tmpDir?: string;
  /** Absent: jails have no cgroups of their own. */
  groups?: Groups | undefined;
}): Promise<Jail> {
  const { sandbox, log, tmpDir = tmpdir(), groups } = options;
  if (sandbox === 'none') {
    log.warn('sandbox is off: functions and Chrome have all access of this user');
    return withMemoryLimit(openNone(log, tmpDir), groups);
  }
  const reasons: string[] = [];
  for (const backend of BACKENDS.filter(({ level }) => sandbox === 'auto' || level === sandbox)) {
    const opened = await backend.open(log, tmpDir);
    if (!('why' in opened)) {
      const why = reasons.join('; ');
      if (why !== '')
        log.warn({ why }, `selected sandbox: ${opened.level}; better ones do not work here`);
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
