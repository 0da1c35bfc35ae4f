/** `npm start`: the printed command works, and each way to end it ends all processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { shell } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { familyOf, processesNaming, signalAll } from '../../support/service/processes.ts';
import { endService, startService } from '../../support/service/serve.ts';
import { boot } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** For a start, and for an end that may drain for 30 s, on a busy machine. */
const LIMIT_MS = 100_000;
/** Runs when the service is stopped, and ends long before the limit of a drain. */
const SLOW = {
  'package.json': '{"name":"slow","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('slow', () => {
  console.log('begun');
  return new Promise((resolve) => setTimeout(() => resolve('whole'), 8_000));
});
`,
};
const start = suite('start');

start('the printed command works, and a SIGTERM to npm alone ends the service', async () => {
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
  const line = await until(() => /^ {2}(TABERN_API_KEY=.* try)$/m.exec(printed)?.[1], LIMIT_MS);
  const [, url = ''] = must(/TABERN_BASE_URL=(\S+)/.exec(line), 'the address');
  is((await fetch(`${url}/readyz`)).status, 200, 'not printed before it is ready');

  const tried = await shell(['sh', '-c', line], { cwd: ROOT, env: {} });
  is(tried.code, 0, tried.stderr);
  const [title, liveView = ''] = tried.stdout.split('\n');
  is(title, 'tabern works');
  ok(liveView.startsWith(`${url}/`), liveView);
  const apiKey = must(/TABERN_API_KEY=(\S+)/.exec(line)?.[1], 'the key');
  const [session] = await until(async () => {
    const answer = await fetch(`${url}/v1/sessions`, { headers: { 'x-svc-api-key': apiKey } });
    const all = (await answer.json()) as { status: string; endReason?: string }[];
    return all.every(({ status }) => status !== 'RUNNING') && all;
  }, LIMIT_MS);
  is(`${session?.status} ${session?.endReason}`, 'COMPLETED the session was released');

  const refused = await shell(['sh', '-c', `${line} example.org`], { cwd: ROOT, env: {} });
  is(refused.code, 2);
  match(refused.stderr, /must be a whole URL/);

  npm.kill('SIGTERM');
  await once(npm, 'exit', { signal: AbortSignal.timeout(LIMIT_MS) });
  await until(() => processesNaming(dataDir).length === 0, LIMIT_MS);
});

start('the first API key is printed at each start until it has been used', async () => {
  await using dir = tempDirectory();
  const env = { TABERN_DATA: join(dir.path, 'data'), TABERN_PORT: String(await freePort()) };
  const keyShown = async (
    then = async (_url: string, _key: string): Promise<void> => undefined,
  ) => {
    const service = await startService(env);
    try {
      const says = /^ {2}base URL|^http:/m;
      await until(() => says.test(service.output()), LIMIT_MS);
      const key = /API key +(svc_\S+)/.exec(service.output())?.[1];
      if (key !== undefined) await then(service.url, key);
      return key;
    } finally {
      await endService(service, 'SIGTERM', LIMIT_MS);
    }
  };
  const key = must(await keyShown(), 'a key at the first start');
  const use = async (url: string, apiKey: string) => {
    const answer = await fetch(`${url}/v1/projects`, { headers: { 'x-svc-api-key': apiKey } });
    is(answer.status, 200);
  };
  is(await keyShown(use), key, 'again, and then it is used');
  is(await keyShown(), undefined);
});

start('a running invocation completes after Ctrl-C, a SIGINT to the process group', async () => {
  await using stack = await boot();
  const { slow } = await publish(stack, SLOW);
  const { id } = await invoke(stack, must(slow, 'slow'));
  const path = `/v1/functions/invocations/${id}`;
  // its browser and its host have started: a signal to a process that starts would end it
  const logs = `${path}/logs`;
  await until(async () => JSON.stringify(await stack.call(logs)).includes('begun'), LIMIT_MS);
  const [service, ...others] = familyOf(stack.pid);
  const inGroup = others.filter(({ group }) => group === must(service, 'service').group);
  signalAll(inGroup, 'SIGINT');
  await stack.kill('SIGINT');
  await stack.restart();
  const { status, results, cause } = await ended(stack, id);
  equal({ status, results, cause }, { status: 'COMPLETED', results: 'whole', cause: undefined });
});

start.run();
