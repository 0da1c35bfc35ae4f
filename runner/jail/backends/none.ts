/**
 * The backend without a sandbox, used only by the operator's choice. Paths and network are the
 * machine's own. The backend still gives a private /tmp and applies the limits, and it ends the
 * whole process group together and with the runner.
 */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../../proto/common/log.ts';
import { removeTree } from '../../common/remove.ts';
import type { At, Jail, Jailed, JailSpec, Mount } from '../jail.ts';
import { findProgram, limitArgv } from '../prlimit.ts';
import { killGroup, start } from '../spawn.ts';

export function openNone(log: Log, tmpDir: string): Jail {
  const prlimit = findProgram('prlimit');
  const setpriv = findProgram('setpriv');
  return {
    level: 'none',
    hasOwnNetwork: false,
    hasUnixSockets: true,
    launch: (spec) =>
      launchUnmounted(spec, {
        tmpDir,
        log,
        command: () => [
          ...limitArgv(prlimit, spec.limits, false),
          ...(setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL', '--']),
        ],
      }),
  };
}

type Unmounted = {
  tmpDir: string;
  log: Log;
  /** The arguments before the program. `mounts`: the spec's after a new directory as /tmp. */
  command(mounts: readonly Mount[], tmp: string): string[];
};

/** Launches a program that sees the machine's own paths and gets a temporary directory as /tmp. */
export function launchUnmounted(spec: JailSpec, { tmpDir, log, command }: Unmounted): Jailed {
  const tmp = mkdtempSync(join(tmpDir, 'tabern-'));
  const mounts = [{ from: tmp, to: '/tmp', writable: true }, ...spec.mounts];
  const at = outside(mounts);
  const { child, exited } = start({
    argv: [...command(mounts, tmp), ...spec.argv(at)],
    env: spec.env(at),
    stdio: spec.stdio,
    cwd: spec.cwd === undefined ? tmp : at(spec.cwd),
    group: spec.group,
  });
  const kill = (): void => killGroup(child.pid, log);
  const removed = exited.then(async (exit) => {
    kill(); // processes that the program left behind would keep running
    await removeTree(tmp).catch((error: unknown) => {
      log.warn({ error: String(error), dir: tmp }, 'cannot remove a temporary directory');
    });
    return exit;
  });
  return { child, exited: removed, kill };
}

/** Maps inside paths to the machine's, by the last mount that contains them; others are equal. */
function outside(mounts: readonly Mount[]): At {
  return (inside) => {
    const mount = mounts.findLast(({ to }) => inside === to || inside.startsWith(`${to}/`));
    return mount === undefined ? inside : mount.from + inside.slice(mount.to.length);
  };
}
