/** A jail that is killed during its start leaves no process. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { programMounts } from '../../../runner/jail/program-mounts.ts';
import { until } from '../../support/poll.ts';
import { processesNaming } from '../../support/service/processes.ts';

const kill = suite('runner/jail/kill');
const log = openLog({ role: 'test', level: 'silent', people: false });
/** A start takes some 30 ms, and is killed at each of its moments. */
const MOMENTS = Array.from({ length: 60 }, (_, at) => at);

for (const sandbox of ['bwrap', 'landlock', 'none'] as const) {
  kill(`${sandbox}: a kill during the start leaves nothing behind`, async () => {
    const jail = await openJail({ sandbox, log });
    const mounts = await programMounts(process.execPath, '/bin/node');
    const mark = randomUUID();
    const spec = {
      argv: (at: (path: string) => string) => {
        return [at('/bin/node'), '-e', 'setInterval(() => {}, 1e6)', mark];
      },
      mounts,
      env: () => ({}),
      limits: { files: 256 },
      tmpBytes: 1 << 20,
      stdio: Array<'ignore'>(3).fill('ignore'),
    };
    const left = () => processesNaming(mark);
    for (const ms of MOMENTS) {
      const jailed = jail.launch({ ...spec, nestedNamespaces: ms % 2 === 0 });
      await sleep(ms);
      jailed.kill();
      await jailed.exited;
    }
    await until(() => left().length === 0, 10_000).catch(() => undefined);
    assert.is(left().length, 0); // a diff of command lines takes minutes
  });
}

kill.run();
