/** `npm start` as an operator runs it: what it prints works, and each way to end it ends all. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { must } from '../../proto/must.ts';
import { ended, invoke, publish } from '../support/functions.ts';
import { openJudged } from '../support/judged.ts';
import { until } from '../support/poll.ts';
import { familyOf, processesNaming, signalAll } from '../support/processes.ts';
import { boot } from '../support/stack.ts';
import { tempDirectory } from '../support/temp.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Of a start, and of an end that may drain for 30 s, on a machine that is busy. */
const LIMIT_MS = 100_000;
/** Has not ended when the service is asked to, and ends long before a drain does. */
const SLOW = {
  'package.json': '{"name":"slow","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('slow', () => new Promise((resolve) => setTimeout(() => resolve('whole'), 3_000)));
`,
};
const start = suite('start');

start('the printed line works, and a SIGTERM for npm alone ends the whole service', async () => {
  await using dir = tempDirectory();
  const dataDir = join(dir.path, 'data');
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, TABERN_DATA: dataDir, TABERN_PORT: '0' };
  const npm = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => signalAll(processesNaming(dataDir), 'SIGKILL'));
  let printed = '';
  npm.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const line = /curl -X POST (\S+) -H "X-SVC-API-Key: (\S+)"[^']*'(.*)'/;
  const [, url = '', key = '', body = ''] = await until(() => line.exec(printed), LIMIT_MS);
  const { origin, pathname } = new URL(url);
  const door = cleanup.use(await openJudged(origin));
  const headers = { 'x-svc-api-key': key, 'content-type': 'application/json' };
  is((await fetch(door.url + pathname, { method: 'POST', headers, body })).status, 201);

  npm.kill('SIGTERM');
  await once(npm, 'exit', { signal: AbortSignal.timeout(LIMIT_MS) });
  await until(() => processesNaming(dataDir).length === 0, LIMIT_MS);
});

start('Ctrl-C, which a terminal sends to the whole group, lets what runs finish', async () => {
  await using stack = await boot();
  const { slow } = await publish(stack, SLOW);
  const { id } = await invoke(stack, must(slow, 'slow'));
  const path = `/v1/functions/invocations/${id}`;
  await until(async () => (await stack.call(path))['status'] === 'RUNNING', LIMIT_MS);
  const [service, ...others] = familyOf(stack.pid);
  const inGroup = others.filter(({ group }) => group === must(service, 'service').group);
  signalAll(inGroup, 'SIGINT');
  await stack.kill('SIGINT');
  await stack.restart();
  const { status, results, cause } = await ended(stack, id);
  equal({ status, results, cause }, { status: 'COMPLETED', results: 'whole', cause: undefined });
});

start.run();
