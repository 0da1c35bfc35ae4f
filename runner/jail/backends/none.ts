/**
 * The backend without a sandbox, used only by the operator's choice. Paths and network are the
 * machine's own. The backend still gives a private /tmp and applies the limits, and it ends the
 * whole process group together and with the runner.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../../proto/common/log.ts';
import { removeTree } from '../../common/remove.ts';
import type { At, Jail, Mount } from '../jail.ts';
import { findProgram, limitArgv } from '../prlimit.ts';
import { killGroup, start } from '../spawn.ts';

export function openNone(log: Log, tmpDir = tmpdir()): Jail {
  const prlimit = findProgram('prlimit');
  const setpriv = findProgram('setpriv');
  return {
    level: 'none',
    hasOwnNetwork: false,
    hasUnixSockets: true,
    launch(spec) {
      const tmp = mkdtempSync(join(tmpDir, 'tabern-'));
      const at = outside([{ from: tmp, to: '/tmp' }, ...spec.mounts]);
      const { child, exited } = start({
        argv: [
          ...limitArgv(prlimit, spec.limits, false),
          ...(setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL', '--']),
          ...spec.argv(at),
        ],
        env: spec.env(at),
        stdio: spec.stdio,
        cwd: spec.cwd === undefined ? tmp : at(spec.cwd),
        ownGroup: true,
        group: spec.group,
      });
      const removed = exited.then(async (exit) => {
        killGroup(child.pid, log); // processes that the program left behind would keep running
        await removeTree(tmp).catch((error) => {
          log.warn({ error: String(error), dir: tmp }, 'cannot remove a temporary directory');
        });
        return exit;
      });
      return { child, exited: removed, kill: () => killGroup(child.pid, log) };
    },
  };
}

/**
 * Maps an inside path to this machine's path, by the last mount that contains it; other paths are
 * returned unchanged.
 */
export function outside(mounts: readonly Mount[]): At {
  return (inside) => {
    const mount = mounts.findLast(({ to }) => inside === to || inside.startsWith(`${to}/`));
    return mount === undefined ? inside : mount.from + inside.slice(mount.to.length);
  };
}
