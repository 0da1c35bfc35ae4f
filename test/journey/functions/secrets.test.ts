/**
 * Runs the main job with marked secrets at log level trace. No secret may be in the output of the
 * service, in its files as plain text, or in what other processes can read (proto/spec/rest.md 6).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { register } from '../../support/clients/journey.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { familyOf } from '../../support/service/processes.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const secrets = suite('secrets');
const PARAM = 'a-param-that-is-marked-5f1d';
const RESULT = 'a-result-that-is-marked-77ab';
const PRINTED = 'a-line-that-is-marked-09ce';
const COOKIE = 'a-cookie-that-is-marked-e3b2';

const PROJECT = {
  'package.json': '{"name":"marked","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('good', async (ctx, params) => {
  console.log('${PRINTED}', ctx.session.connectUrl);
  return { url: ctx.session.connectUrl, result: '${RESULT}' };
});
defineFn('bad', async (ctx, params) => {
  throw new Error(params.password + ctx.session.connectUrl);
});
`,
};

secrets('no secret is printed, stored in plain text, or visible to other processes', async () => {
  await using receiver = await startReceiver();
  await using stack = await boot({
    webhookCa: receiver.caPath,
    env: { TABERN_LOG_LEVEL: 'trace' },
  });
  const { id: webhookId, secret } = await register(stack, receiver);
  const rotated = await stack.call<{ secret: string }>(`/v1/webhooks/${webhookId}/secret`, {
    json: {},
  });
  await stack.call('/v1/contexts', { json: { name: 'marked' } });
  const ids = await publish(stack, PROJECT);
  const tokens: string[] = [];
  for (const name of ['good', 'bad']) {
    const { id } = await invoke(stack, must(ids[name], name), { password: PARAM });
    const { results, cause } = await ended(stack, id);
    tokens.push(tokenIn(JSON.stringify(results ?? cause)));
    await receiver.received(({ body }) => body.toString().includes(id));
  }
  await failures(stack);

  const named = {
    'API key': stack.apiKey,
    'first secret': secret,
    'second secret': rotated.secret,
    'session token': must(tokens[0], 'one'),
    'other token': must(tokens[1], 'another'),
    'runner token': tokenOf(stack, 'runner'),
    'gateway token': tokenOf(stack, 'gateway'),
  };
  const contents = { param: PARAM, result: RESULT, line: PRINTED, cookie: COOKIE };
  const key = { 'private key': 'PRIVATE KEY' };
  for (const family of familyOf(stack.pid).filter(({ pid }) => pid !== stack.pid)) {
    const shown = ['cmdline', 'environ'].map((file) => textOf(`/proc/${family.pid}/${file}`));
    expectNone(`process ${family.command}`, shown.join('\0'), { ...named, ...contents, ...key });
  }
  await stack.kill('SIGTERM');
  expectNone('the output', stack.logs(), { ...named, ...contents, ...key });
  const { 'session token': _one, 'other token': _other, ...stored } = named; // in results
  assert.match(stack.logs(), /"level":"debug"/);
  let isFound = false;
  for await (const { place, text } of stack.stored.texts()) {
    isFound ||= text.includes(PARAM);
    if (/keys\/\w+\.token$/.test(place)) continue;
    expectNone(place, text, { ...stored, ...key });
  }
  assert.ok(isFound, 'the search finds stored text');
});

/** Requests that fail in many ways, with a secret in each of their parts. */
async function failures(stack: Stack): Promise<void> {
  const wrong = { 'x-svc-api-key': `${stack.apiKey}x`, cookie: COOKIE };
  assert.is((await stack.fetch('/v1/contexts', { headers: wrong })).status, 401);
  const json = { params: { password: PARAM }, [PARAM]: 1 };
  const unknown = '/v1/functions/01a1fbc0-0000-7000-8000-000000000000/invoke';
  assert.is((await stack.fetch(unknown, { json })).status, 400);
  const headers = { cookie: COOKIE, 'content-type': 'application/json' };
  const body = `{"name":"${PARAM}`;
  const broken = await stack.fetch('/v1/contexts', { method: 'POST', headers, body });
  assert.is(broken.status, 400);
  assert.is((await stack.fetch(`/v1/contexts?cursor=${PARAM}`)).status, 400);
}

function tokenIn(text: string): string {
  return must(/signingKey=([\w.~-]{16,})/.exec(text)?.[1], 'a token');
}

function tokenOf({ dataDir }: Stack, name: string): string {
  return readFileSync(join(dataDir, 'keys', `${name}.token`), 'utf8').trim();
}

function expectNone(place: string, text: string, wanted: Record<string, string>): void {
  for (const [name, value] of Object.entries(wanted)) {
    const plain = value.replace(/^whsec_/, '');
    const bytes = Buffer.from(plain, 'base64').toString('latin1');
    assert.not.ok(text.includes(plain), `${name} in ${place}`);
    if (value !== plain) assert.not.ok(text.includes(bytes), `bytes of ${name} in ${place}`);
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ESRCH'].includes(code)) return ''; // the process has ended
    throw error;
  }
}

secrets.run();
