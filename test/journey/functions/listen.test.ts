/** `tabern listen` with a real service: an invocation's events, forwarded to a local server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moduleCacheEnv } from '../../../proto/common/compile-cache.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import type { Envelope } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
/** For two starts of the service and two invocations, on a busy machine. */
const LIMIT_MS = 60_000;
const journey = suite('listen');

type Got = { headers: Record<string, string>; body: Buffer };

journey('signed events are forwarded, across a restart of the service, until Ctrl-C', async () => {
  await using stack = await boot();
  const { trivial = '' } = await publish(stack);
  await using local = await startLocal();
  await using dir = tempDirectory();
  await using listening = startListening(stack, local.url, dir.path);
  const secret = await until(() => /whsec_\S+/.exec(listening.said.err)?.[0], LIMIT_MS);
  const webhook = new Webhook(secret);
  const idsOf = (id: string) =>
    local.got
      .map(({ headers, body }) => webhook.verify(body, headers) as Envelope)
      .filter(({ resourceId }) => resourceId === id)
      .map(({ type }) => type);

  const first = await invoke(stack, trivial);
  await ended(stack, first.id);
  await until(() => idsOf(first.id).length === 3, LIMIT_MS);
  assert.equal(
    idsOf(first.id),
    ['pending', 'running', 'completed'].map((name) => `functions.invocations.${name}`),
  );

  await stack.restart();
  await until(() => listening.said.err.includes('the service is back'), LIMIT_MS);
  const second = await invoke(stack, trivial);
  await until(() => idsOf(second.id).length === 3, LIMIT_MS);
  const lines = () => listening.said.out.trim().split('\n');
  await until(() => lines().length === local.got.length, LIMIT_MS);
  for (const line of lines()) assert.match(line, / 200 (?:functions|sessions)\./);

  const exited = once(listening.child, 'exit');
  listening.child.kill('SIGINT');
  assert.equal(await exited, [0, null]);

  await using again = startListening(stack, local.url, dir.path);
  assert.is(await until(() => /whsec_\S+/.exec(again.said.err)?.[0], LIMIT_MS), secret);
});

journey.run();

async function startLocal() {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    got.push({ headers: request.headers as Got['headers'], body: await buffer(request) });
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    got,
    url: `http://127.0.0.1:${port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function startListening(stack: Stack, url: string, stateDir: string) {
  const { PATH, HOME } = process.env;
  const own = { TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const child: ChildProcess = spawn(process.execPath, [BIN, 'listen', '--forward-to', url], {
    env: { PATH, HOME, ...moduleCacheEnv(), XDG_STATE_HOME: stateDir, ...own },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said.out += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said.err += text;
  });
  return {
    child,
    said,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
    },
  };
}
