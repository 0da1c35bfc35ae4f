import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keepRunner, runnerEnv } from '../../gateway/runner-child.ts';
import { openLog } from '../../proto/log.ts';
import { until } from '../support/poll.ts';

const test = suite('gateway/runner-child');
const log = openLog({ role: 'test', level: 'silent' });

/** What node runs in place of a runner: `script`, with the file that it may write to as argv[1]. */
async function keep(script: string) {
  const directory = await mkdtemp(join(tmpdir(), 'tabern-child-'));
  const file = join(directory, 'said');
  const runner = keepRunner({ PATH: '/bin' }, log, ['-e', script, file]);
  const said = async (text: string) => {
    let now = '';
    const isSaid = async () => {
      now = await readFile(file, 'utf8').catch(() => '');
      return now === text;
    };
    await until(isSaid).catch(() => assert.unreachable(`it said ${now}, not ${text}`));
  };
  return {
    runner,
    said,
    async [Symbol.asyncDispose]() {
      await runner.close();
      await rm(directory, { recursive: true });
    },
  };
}

const SAY = "const say = (text) => require('node:fs').appendFileSync(process.argv[1], text);";

test('a runner that dies is started again', async () => {
  await using kept = await keep(`${SAY} say('x'); process.exit(1);`);
  await kept.said('xxx');
});

test('a runner that refuses is not started again, and its code is told', async () => {
  for (const code of [2, 78]) {
    await using kept = await keep(`${SAY} say('x'); process.exit(${code});`);
    assert.is(await kept.runner.refused, code);
    await kept.said('x');
  }
});

test('close asks the runner to end and waits for it', async () => {
  const script = `${SAY}
    process.on('SIGTERM', () => setTimeout(() => { say('!'); process.exit(0); }, 50));
    process.on('disconnect', () => say('?'));
    say('up');`;
  await using kept = await keep(script);
  await kept.said('up');
  await kept.runner.close();
  await kept.said('up!');
});

test('a runner sees its part of the environment and no key of the operator', () => {
  const env = {
    PATH: '/bin',
    HOME: '/root',
    npm_execpath: '/npm',
    TABERN_DATA: '/srv',
    TABERN_CHROME: '/chrome',
    TABERN_API_KEY: 'a key',
    TABERN_API_KEY_FILE: '/key',
    TABERN_GATEWAY_TOKEN: 'a token',
    AWS_SECRET_ACCESS_KEY: 'a secret',
    NODE_OPTIONS: '--inspect',
  };
  const { PATH, HOME, npm_execpath, TABERN_DATA, TABERN_CHROME } = env;
  assert.equal(runnerEnv(env), { PATH, HOME, npm_execpath, TABERN_DATA, TABERN_CHROME });
});

test.run();
