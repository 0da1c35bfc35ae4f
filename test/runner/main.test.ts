/** The role as a process: a runner that another runner replaces. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, invoke, publish } from '../support/clients/functions.ts';
import { until } from '../support/poll.ts';
import { boot } from '../support/service/stack.ts';

const main = suite('runner/main');
const BIN = fileURLToPath(new URL('../../gateway/bin.ts', import.meta.url));
/** A start with its probe of Chrome, twice, on a busy machine. */
const LIMIT_MS = 60_000;
const SUPERSEDED = 75;

main(
  'of two runners on one data directory the older ends, and the newer continues the work',
  async () => {
    await using stack = await boot();
    const { trivial = '' } = await publish(stack);
    const first = await stack.runnerPid();
    const stray = spawn(process.execPath, [BIN, 'runner'], {
      env: { ...process.env, TABERN_DATA: stack.dataDir },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    stray.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const strayEnd = once(stray, 'close', { signal: AbortSignal.timeout(LIMIT_MS) });
    // serve starts its own again, which is the newer one then
    await until(async () => (await stack.runnerPid()) !== first, LIMIT_MS);
    await until(() => stack.logs().includes(`"code":${SUPERSEDED}`));
    assert.equal(await strayEnd, [SUPERSEDED, null], said);
    assert.match(said, /another runner on this data directory has registered/);
    const { id } = await invoke(stack, trivial);
    assert.is((await ended(stack, id)).status, 'COMPLETED');
  },
);

main.run();
