/** Secrets by the published SDK and by the command line, and the functions that read them. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Browserbase, { APIError } from '@browserbasehq/sdk';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { until } from '../../support/poll.ts';
import { tabern } from '../../support/service/command.ts';
import { onTerminal } from '../../support/service/pty.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/functions/sdk-secrets');
const service = shareStack();

const TOKEN = 'tok_a-secret-that-is-marked-9c2e';
const KEY = '-----BEGIN KEY-----\nMIIEvQIBADANBgkq-marked\nab\n-----END KEY-----';
const PROJECT = {
  'package.json': '{"name":"keeper","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { spawnSync } from 'node:child_process';
import { defineFn } from 'tabern';
defineFn('keeper', async ({ secrets }, params) => {
  console.log('token', secrets.TOKEN, { secrets });
  console.error(secrets.KEY);
  process.stdout.write(String(secrets.TOKEN).slice(0, 9));
  process.stdout.write(String(secrets.TOKEN).slice(9) + '\\n');
  if (params.fail) throw new Error('refused ' + secrets.TOKEN);
  const env = spawnSync('env', [], { encoding: 'utf8' }).stdout ?? '';
  return { ...secrets, env: env + JSON.stringify(process.env) };
});
defineFn('stranger', async ({ secrets }) => secrets);
`,
};

function clientOf({ url, apiKey }: Stack): Browserbase {
  return new Browserbase({ apiKey, baseURL: url });
}

async function statusOf(promise: Promise<unknown>): Promise<number | undefined> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(error, APIError);
  return (error as APIError).status;
}

/** As the text of the SDK says. */
async function sealed(client: Browserbase, value: string) {
  return sealedFor(await client.secrets.getPublicKey(), value);
}

async function linesOf(stack: Stack, id: string): Promise<string> {
  type Logs = { logs: { message: string }[] };
  const { logs } = await stack.call<Logs>(`/v1/functions/invocations/${id}/logs`);
  return logs.map(({ message }) => message).join('\n');
}

journey(
  'the SDK stores and attaches secrets; handlers read them, and logs are masked',
  async () => {
    const stack = await service.get();
    const client = clientOf(stack);
    const { keeper = '', stranger = '' } = await publish(stack, PROJECT);
    const token = await client.secrets.create({
      secretKey: 'TOKEN',
      ...(await sealed(client, TOKEN)),
    });
    const key = await client.secrets.create({ secretKey: 'KEY', ...(await sealed(client, KEY)) });
    assert.equal(await client.secrets.retrieve(token.id), token);
    const all = await client.secrets.list({ limit: 1 });
    assert.equal([all.data, all.limit], [[key], 1]);
    const rest = await client.secrets.list({ limit: 1, cursor: must(all.nextCursor, 'cursor') });
    assert.equal([rest.data, rest.nextCursor], [[token], null]);
    for (const { id } of [token, key, token]) {
      await client.functions.secrets.attach(keeper, { secretId: id });
    }
    assert.equal((await client.functions.secrets.list(keeper)).data, [key, token]);

    const { id } = await invoke(stack, keeper);
    const { env, ...results } = (await ended(stack, id)).results as Record<string, string>;
    assert.equal(results, { TOKEN, KEY }, 'results are left alone');
    assert.not.match(String(env), /marked/);
    const lines = await linesOf(stack, id);
    assert.not.match(lines, /marked|BEGIN/);
    assert.match(lines, /^token \*\*\* \{/);
    assert.match(lines, /\*\*\*\n\*\*\*\nab\n\*\*\*/);

    const failed = await ended(stack, (await invoke(stack, keeper, { fail: true })).id);
    assert.equal([failed.status, failed.cause?.message], ['FAILED', 'refused ***']);
    assert.not.match(JSON.stringify(failed), /marked/);
    assert.equal((await ended(stack, (await invoke(stack, stranger)).id)).results, {});
    assert.not.match(stack.logs(), /marked/);

    const changed = await sealed(client, 'another value');
    assert.equal(await client.secrets.update(token.id, changed), token);
    for (const _ of [1, 2]) await client.functions.secrets.detach(keeper, key.id);
    const second = await ended(stack, (await invoke(stack, keeper)).id);
    assert.is((second.results as Record<string, string>)['TOKEN'], 'another value');
    assert.is((second.results as Record<string, string>)['KEY'], undefined);

    const broken = { ...changed, sealedSecretValue: Buffer.alloc(64, 1).toString('base64') };
    await client.secrets.update(token.id, broken);
    const third = await ended(stack, (await invoke(stack, keeper)).id);
    assert.is(
      third.cause?.message,
      'the secret "TOKEN" could not be opened: store its value again',
    );
    assert.is(await linesOf(stack, third.id), '', 'the handler did not run');

    await client.secrets.delete(token.id);
    await client.secrets.delete(key.id);
    assert.equal((await client.functions.secrets.list(keeper)).data, []);
  },
);

journey('wrong requests of the SDK have the statuses of the interface', async () => {
  const stack = await service.get();
  const client = clientOf(stack);
  const good = { secretKey: 'TAKEN', ...(await sealed(client, 'value')) };
  const { id } = await client.secrets.create(good);
  assert.is(await statusOf(client.secrets.create(good)), 409);
  assert.is(await statusOf(client.secrets.create({ ...good, secretKey: 'no-name' })), 400);
  assert.is(await statusOf(client.secrets.create({ ...good, sealedSecretValue: 'x' })), 400);
  const unknown = '01a1fbc0-0000-7000-8000-000000000000';
  assert.is(await statusOf(client.secrets.create({ ...good, keypairId: unknown })), 400);
  assert.is(await statusOf(client.secrets.retrieve(unknown)), 404);
  assert.is(await statusOf(client.secrets.list({ limit: 101 })), 400);
  assert.is(await statusOf(client.functions.secrets.attach(unknown, { secretId: id })), 404);
  await client.secrets.delete(id);
  assert.is(await statusOf(client.secrets.delete(id)), 404);
});

journey('tabern secrets: a value from a file or a terminal, sealed before it is sent', async () => {
  const stack = await service.get();
  const { keeper = '' } = await publish(stack, PROJECT);
  await using dir = tempDirectory();
  const env = { TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const said = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await tabern(['secrets', ...argv], env).ended;
    return code === 0 ? out.trim() : `${code}: ${err.trim()}`;
  };
  writeFileSync(join(dir.path, 'key.pem'), `${KEY}\n`);
  const id = await said('set', 'KEY', '--from-file', join(dir.path, 'key.pem'));
  assert.match(id, /^[-0-9a-f]{36}$/);
  assert.is(await said('attach', 'KEY', 'keeper'), id);

  const terminal = onTerminal(['secrets', 'set', 'TOKEN'], { env });
  await until(() => terminal.text().includes('value of TOKEN'), 60_000);
  terminal.type(`${TOKEN}\r`);
  assert.is(await terminal.ended, 0);
  assert.not.match(terminal.text(), /marked/, 'what is typed is not shown');
  await said('attach', 'TOKEN', 'keeper');

  assert.match(await said('list'), /^ID +NAME\n\S+ +TOKEN\n\S+ +KEY$/);
  const run = await ended(stack, (await invoke(stack, keeper)).id);
  const { env: _, ...results } = run.results as Record<string, string>;
  assert.equal(results, { TOKEN, KEY });

  writeFileSync(join(dir.path, 'new'), 'new value');
  assert.is(await said('set', 'KEY', '--from-file', join(dir.path, 'new')), id, 'replaced');
  assert.is(await said('detach', 'KEY', 'keeper'), id);
  assert.is(JSON.parse(await said('delete', 'KEY', '--json')).id, id);
  assert.match(await said('delete', 'KEY'), /^1: there is no secret "KEY"/);
  assert.match(await said('set', 'EMPTY'), /^2: the value is empty/);
  assert.match(await said('set', 'A', '--from-file', '/none'), /^2: \/none cannot be read/);
  await said('delete', 'TOKEN');
});

/** While the file exists, no process can load the module that opens secrets. */
const preloadOf = (file: string): string => `
  import { existsSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  const resolve = (name, context, next) => {
    if (name === '@hpke/core' && existsSync(${JSON.stringify(file)})) throw new Error('no module');
    return next(name, context);
  };
  registerHooks({ resolve });`;

journey('an invocation whose secrets cannot be opened for the moment waits', async () => {
  await using dir = tempDirectory();
  const file = join(dir.path, 'away');
  const preload = `data:text/javascript,${encodeURIComponent(preloadOf(file))}`;
  await using stack = await boot({ preload });
  const { keeper = '', stranger = '' } = await publish(stack, PROJECT);
  const client = clientOf(stack);
  const stored = { secretKey: 'TOKEN', ...(await sealed(client, TOKEN)) };
  const { id: secretId } = await client.secrets.create(stored);
  await client.functions.secrets.attach(keeper, { secretId });
  writeFileSync(file, '');
  await stack.restart();
  const { id } = await invoke(stack, keeper);
  await until(() => stack.logs().includes('Secrets cannot be opened now'), 60_000);
  const { status } = await stack.call<{ status: string }>(`/v1/functions/invocations/${id}`);
  assert.is(status, 'PENDING');
  const other = await ended(stack, (await invoke(stack, stranger)).id);
  assert.equal(other.results, {}, 'others do not wait with it');
  rmSync(file);
  const { results, cause } = await ended(stack, id);
  assert.is((results as Record<string, string>)?.['TOKEN'], TOKEN, JSON.stringify(cause));
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
