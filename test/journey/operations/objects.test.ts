/** The commands of a project's resources against the real service. */
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { type Action, act } from '../../../runner/cli/objects.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { tabern } from '../../support/service/command.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/operations/objects');
const service = shareStack();

type Options = Record<string, string | boolean>;

/** The output of a command. */
async function said(
  stack: Stack,
  action: Action,
  words: readonly string[] = [],
  options: Options = {},
): Promise<string> {
  const lines: string[] = [];
  const cli = {
    baseUrl: stack.url,
    apiKey: stack.apiKey,
    cwd: '/',
    pollMs: 20,
    userDir: () => stack.dataDir,
    print: (line: string) => void lines.push(line),
    say: (line: string) => void lines.push(line),
  };
  is(await act(action, { words, options, cli }), 0);
  return lines.join('\n');
}

async function refused(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (why: Error) => why,
  );
  ok(error, 'was not refused');
  return error.message;
}

journey('sessions from the command line, from their start to their end', async () => {
  const stack = await service.get();
  const created = await said(stack, 'sessions create', [], { keepAlive: true, timeout: '600' });
  const [id = '', connectUrl = ''] = created.split('\n');
  match(connectUrl, /^ws:\/\/.*signingKey=/);
  match(await said(stack, 'sessions list', [], { status: 'RUNNING' }), new RegExp(`^${id} `, 'm'));
  match(await said(stack, 'sessions get', [id]), /^status +RUNNING$/m);
  match(await said(stack, 'sessions debug', [id]), /^http.*\/live\?token=/);
  is(await said(stack, 'sessions release', [id]), id);
  const isOver = async () => (await said(stack, 'sessions get', [id])).includes('COMPLETED');
  await until(isOver);
  const list = await said(stack, 'sessions list', [], { status: 'RUNNING' });
  not.match(list, new RegExp(id));
  match(await said(stack, 'sessions logs', [id]), /^TIME +METHOD/);
  ok(Array.isArray(JSON.parse(await said(stack, 'sessions logs', [id], { json: true }))));
  match(await refused(said(stack, 'sessions get', ['x'])), /^400 `id` must be a UUID/);
  match(await refused(said(stack, 'sessions create', [], { timeout: 'x' })), /whole number/);
  match(await refused(said(stack, 'sessions create', [], { body: '[]' })), /JSON object/);
});

journey('functions, invocations and builds from the command line', async () => {
  const stack = await service.get();
  const { trivial = '' } = await publish(stack);
  const { id: run } = await invoke(stack, trivial);
  await ended(stack, run);
  match(await said(stack, 'functions list'), new RegExp(`^${trivial}  trivial `, 'm'));
  equal(JSON.parse(await said(stack, 'functions get', ['trivial'], { json: true })).id, trivial);
  match(await said(stack, 'functions versions', ['trivial']), /^ID +CREATED AT\n[0-9a-f-]{36} /);
  match(await said(stack, 'invocations list', ['trivial']), new RegExp(`^${run}  COMPLETED `, 'm'));
  not.match(await said(stack, 'invocations list', [trivial], { status: 'FAILED' }), run);
  match(await said(stack, 'invocations get', [run]), /^status +COMPLETED$/m);
  const builds = JSON.parse(await said(stack, 'builds list', [], { json: true }));
  const [{ id: build = '' }] = builds;
  match(await said(stack, 'builds get', [build]), /^status +COMPLETED$/m);
  match(await said(stack, 'builds logs', [build]), /\d{2}:\d{2}:\d{2}\.\d{3} info /);
  match(
    await refused(said(stack, 'functions get', ['nothing'])),
    /no function "nothing"; `tabern functions list`/,
  );
});

journey('contexts and webhooks from the command line', async () => {
  const stack = await service.get();
  const id = await said(stack, 'contexts create', ['shop']);
  match(await said(stack, 'contexts list'), new RegExp(`^${id}  shop `, 'm'));
  equal(JSON.parse(await said(stack, 'contexts get', [id], { json: true })).name, 'shop');
  is(await said(stack, 'contexts delete', [id]), id);
  match(await refused(said(stack, 'contexts get', [id])), /^404 Context not found/);

  const events = 'functions.invocations.completed, functions.invocations.failed';
  const endpoint = 'https://127.0.0.1:9/hook';
  const made = await said(stack, 'webhooks create', [endpoint], { events });
  const [hook = '', secret = ''] = made.split('\n');
  match(secret, /^whsec_/);
  match(await said(stack, 'webhooks list'), new RegExp(`^${hook}  ENABLED  ${endpoint} `, 'm'));
  not.match(await said(stack, 'webhooks get', [hook]), /whsec_/);
  match(await said(stack, 'webhooks rotate', [hook], { revoke: true }), /^whsec_/);
  await said(stack, 'webhooks test', [hook]);
  match(await said(stack, 'webhooks deliveries', [hook]), /^ID +STATUS +EVENT TYPE/);
  match(await said(stack, 'webhooks enable', [hook]), /ENABLED/);
  is(await said(stack, 'webhooks delete', [hook]), hook);
  match(await refused(said(stack, 'webhooks get', [hook])), /^404/);

  const env = { TABERN_BASE_URL: stack.url, TABERN_API_KEY: stack.apiKey };
  const { code, out, err } = await tabern(['contexts', 'create', 'two', '--json'], env).ended;
  is(code, 0, err);
  equal(Object.hasOwn(JSON.parse(out), 'publicKey'), true);
  const wrong = await tabern(['contexts', 'get', 'x', '--api-key', 'wrong-key'], env).ended;
  equal([wrong.code, wrong.out], [1, '']);
  match(wrong.err, /^401 Invalid API key/);
  not.match(wrong.err, /wrong-key/);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
