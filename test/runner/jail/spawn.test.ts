/** A kill of a jail ends its whole process group, and never the caller. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { findProgram } from '../../../runner/jail/prlimit.ts';
import { killGroup } from '../../../runner/jail/spawn.ts';
import { until } from '../../support/poll.ts';
import { isRunning, processes } from '../../support/service/processes.ts';

const launch = suite('runner/jail/spawn');
const log = openLog({ role: 'test', level: 'silent' });
const POWERLESS = join(import.meta.dirname, 'powerless.ts');
/** Unused, by accounts and by jails. */
const OTHER_UID = 54_321;
const isRoot = process.getuid?.() === 0;

/** A process group of two; gives its number. */
async function startGroup(uid?: number): Promise<number> {
  const owner = uid === undefined ? {} : { uid, gid: uid };
  const options = { ...owner, detached: true, stdio: 'ignore', cwd: '/' } as const;
  const child = spawn('/bin/sh', ['-c', 'sleep 600 & wait'], options);
  await once(child, 'spawn');
  const group = must(child.pid, 'a pid');
  await until(() => membersOf(group).length === 2);
  return group;
}

function membersOf(group: number): number[] {
  return processes().flatMap((one) => (one.group === group ? [one.pid] : []));
}

launch('a kill ends the whole group; a second kill has no effect', async () => {
  const group = await startGroup();
  killGroup(group, log);
  await until(() => membersOf(group).length === 0);
  killGroup(group, log);
  killGroup(undefined, log);
});

if (isRoot) {
  launch('a refused kill is logged, and the runner continues', async () => {
    const group = await startGroup(OTHER_UID);
    try {
      const without = ['--bounding-set', '-kill', '--inh-caps', '-kill', '--'];
      const setpriv = must(findProgram('setpriv'), 'setpriv');
      const command = [...without, process.execPath, POWERLESS, String(group)];
      const { stdout, stderr } = await promisify(execFile)(setpriv, command);
      assert.is(stdout, 'lives on');
      const { level, pid, err } = JSON.parse(stderr);
      assert.equal([level, pid, err.code], ['error', group, 'EPERM']);
      assert.ok(isRunning(group));
    } finally {
      killGroup(group, log);
    }
  });
}

launch.run();
