/**
 * Tools for agents, with real browsers: the official client over HTTP and over stdio, the
 * inspector, and the tools of @playwright/mcp.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { publish } from '../../support/clients/functions.ts';
import { shell, userProject } from '../../support/clients/journey.ts';
import { openPerson } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { processesNaming } from '../../support/service/processes.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';
import { type TempDirectory, tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/sessions/mcp');
const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
const service = shareStack({ env: { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' } });

type Content = { type: string; text?: string; data?: string; mimeType?: string };
type Result = {
  content: Content[];
  isError?: boolean;
  structuredContent?: { [id: string]: string };
};

/** The text of the answer, its other content, its ids. Throws when it is an error. */
async function use(client: Client, name: string, given: Record<string, unknown> = {}) {
  const result = (await client.callTool({ name, arguments: given })) as Result;
  const text = result.content.map((one) => one.text ?? '').join('\n');
  if (result.isError) throw new Error(`${name}: ${text}`);
  return { text, content: result.content, ids: result.structuredContent ?? {} };
}

async function overHttp(stack: Stack): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${stack.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${stack.apiKey}` } },
    }),
  );
  return client;
}

/** The tools of pages, functions and a person, of a session that runs. */
async function useTools(client: Client, stack: Stack, site: { url: string }): Promise<string> {
  const { ids } = await use(client, 'session_start', { timeout: 600, labels: ['agent'] });
  const sessionId = must(ids['sessionId'], 'a session');
  await until(async () => (await use(client, 'session_list')).text.includes(sessionId));
  const page = await use(client, 'fetch', { url: `${site.url}/moved` });
  match(page.text, `${site.url}/rooms  200  Rooms`);
  const links = await use(client, 'fetch', { url: `${site.url}/rooms`, format: 'links' });
  match(links.text, `${site.url}/rooms/1`);
  const raw = await use(client, 'fetch', { url: `${site.url}/moved`, format: 'raw' });
  match(raw.text, /^200 {2}text\/html[\s\S]*<title>Rooms/);
  const [picture] = (await use(client, 'screenshot', { url: `${site.url}/rooms` })).content;
  const bytes = Buffer.from(picture?.data ?? '', 'base64');
  equal([picture?.mimeType, bytes.toString('hex', 0, 3)], ['image/jpeg', 'ffd8ff']);
  await publish(stack);
  match((await use(client, 'function_list')).text, /^trivial {2}/m);
  const ran = await use(client, 'function_invoke', { function: 'trivial', params: { a: 1 } });
  match(ran.text, /COMPLETED[\s\S]*"params":\{"a":1\}/);
  const invocationId = must(ran.ids['invocationId'], 'an invocation');
  match((await use(client, 'function_logs', { invocationId })).text, 'COMPLETED');
  return sessionId;
}

/** A person finishes a handoff of the session. */
async function handOff(client: Client, sessionId: string): Promise<void> {
  await using person = await openPerson();
  const instructions = 'Log in, please';
  const asked = await use(client, 'handoff', { sessionId, instructions });
  const url = must(/http:\S+\/live\S+/.exec(asked.text)?.[0], 'a link');
  const handoff = { sessionId, handoffId: asked.ids['handoffId'] };
  match((await use(client, 'handoff_wait', { ...handoff, wait: 0 })).text, /^PENDING/);
  await person.page.goto(url);
  await person.page.locator('#done').click();
  match((await use(client, 'handoff_wait', handoff)).text, /^COMPLETED/);
}

journey('over HTTP: a session, pages, a person, a function', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const client = await overHttp(stack);
  const sessionId = await useTools(client, stack, site);
  await handOff(client, sessionId);
  match((await use(client, 'live_view', { sessionId })).text, /http:\S+\/live\?token=/);
  await use(client, 'session_end', { sessionId });
  await until(async () => !(await use(client, 'session_list')).text.includes(sessionId));
  const all = (await use(client, 'session_list', { status: 'any' })).text;
  ok(all.includes(`${sessionId}  COMPLETED`), all);
  await client.close();
});

/** The project with the packages of agents, installed once for all tests. */
function installed(): Promise<TempDirectory> {
  shared ??= install();
  return shared;
}

let shared: Promise<TempDirectory> | undefined;

async function install(): Promise<TempDirectory> {
  const project = userProject('mcp');
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  const own = process.env as Record<string, string>; // for the npm registry
  const { code, stderr } = await shell(['npm', 'ci', ...flags], { cwd: project.path, env: own });
  is(code, 0, stderr);
  return project;
}

journey('the inspector lists the tools without a problem, and calls one', async () => {
  const stack = await service.get();
  const project = await installed();
  const inspect = (...more: string[]) =>
    shell(
      [
        ...[join(project.path, 'node_modules/.bin/mcp-inspector'), '--cli', `${stack.url}/mcp`],
        ...['--transport', 'http', '--header', `Authorization: Bearer ${stack.apiKey}`, ...more],
      ],
      { cwd: project.path, env: { HOME: project.path } },
    );
  const listed = await inspect('--method', 'tools/list', '--strict');
  is(listed.code, 0, listed.stderr);
  equal([JSON.parse(listed.stdout).tools.length, listed.stderr], [11, '']);
  const call = ['--method', 'tools/call', '--tool-name'];
  const called = await inspect(...call, 'session_list', '--tool-arg', 'status=ERROR');
  is(called.code, 0, called.stderr);
  match(called.stdout, 'No session has this status.');
  const refused = await inspect(...call, 'session_end', '--tool-arg', 'sessionId=x');
  match(refused.stdout, '`sessionId` must be a UUID.');
});

type Mode = 'legacy' | 'auto';

/** `tabern mcp` as an agent starts it, in that directory. Ended also by a failed test. */
async function overStdio(stack: Stack, cwd: string, mode: Mode = 'legacy') {
  const changes: number[] = [];
  const client = new Client(
    { name: 'test', version: '1' },
    {
      versionNegotiation: { mode },
      listChanged: { tools: { onChanged: (_, tools) => changes.push(tools?.length ?? 0) } },
    },
  );
  const env = { TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const args = [BIN, 'mcp'];
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd, env });
  await client.connect(transport);
  return { client, changes, [Symbol.asyncDispose]: () => client.close() };
}

/** Ended without a call of the tool. */
async function released(stack: Stack, id: string): Promise<string> {
  const { signingKey } = await stack.call<{ signingKey: string }>(`/v1/sessions/${id}`);
  await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
  await until(async () => {
    return (await stack.call<{ status: string }>(`/v1/sessions/${id}`)).status === 'COMPLETED';
  });
  return signingKey;
}

for (const mode of ['legacy', 'auto'] as const) {
  journey(`over stdio: the same tools, and those of Playwright (${mode})`, async () => {
    await using site = await startSite();
    const project = await installed();
    const stack = await service.get();
    await using agent = await overStdio(stack, project.path, mode);
    const { client, changes } = agent;
    is((await client.listTools()).tools.length, 11);
    const refused = (await client.callTool({ name: 'browser_snapshot' })) as Result;
    match(refused.content[0]?.text ?? '', 'call session_start');
    const sessionId = await useTools(client, stack, site);
    await until(() => changes.length === 1);
    const { tools } = await client.listTools();
    ok(tools.length === changes[0] && tools.some(({ name }) => name === 'browser_click'));
    await use(client, 'browser_navigate', { url: `${site.url}/` });
    const { text } = await use(client, 'browser_snapshot');
    match(text, /Page Title: The inn[\s\S]*link "\/rooms"/);
    match((await use(client, 'live_view', { sessionId })).text, `The inn ${site.url}/`);
    const [, picture] = (await use(client, 'browser_take_screenshot')).content;
    equal([picture?.type, picture?.mimeType], ['image', 'image/png']);
    await handOff(client, sessionId);
    await use(client, 'session_end', { sessionId });
    await until(() => changes.length === 2);
    is((await client.listTools()).tools.length, 11);
    const { ids } = await use(client, 'session_start');
    await client.close();
    // a session that the command started ends with it
    await until(async () => {
      const { status } = await stack.call<{ status: string }>(`/v1/sessions/${ids['sessionId']}`);
      return status === 'COMPLETED';
    });
  });
}

journey('over stdio: a session that ended, a process that ended, and never a key', async () => {
  const project = await installed();
  const stack = await service.get();
  await using agent = await overStdio(stack, project.path);
  const { client, changes } = agent;
  const { ids } = await use(client, 'session_start');
  const signingKey = await released(stack, must(ids['sessionId'], 'a session'));
  const late = (await client.callTool({ name: 'browser_snapshot', arguments: {} })) as Result;
  const seen = JSON.stringify(late);
  ok(late.isError === true && !seen.includes(signingKey) && !seen.includes(stack.apiKey), seen);
  await until(() => changes.length === 1);
  const [playwright] = processesNaming(join(project.path, 'node_modules/@playwright/mcp'));
  const { pid, command } = must(playwright, 'the process of @playwright/mcp');
  ok(!command.includes(signingKey), 'other users can read a command line');
  process.kill(pid, 'SIGKILL');
  await until(() => changes.length === 2);
  is((await client.listTools()).tools.length, 11);
});

journey('over stdio without @playwright/mcp: session_start says how to install it', async () => {
  await using dir = tempDirectory();
  const stack = await service.get();
  await using agent = await overStdio(stack, dir.path);
  const { client } = agent;
  const { text } = await use(client, 'session_start');
  match(text, /RUNNING[\s\S]*npm install -g @playwright\/mcp/);
});

journey('over stdio: a call says that the service is gone, and the next one finds it', async () => {
  await using dir = tempDirectory();
  const stack = await service.get();
  const port = Number(new URL(stack.url).port);
  const open = new Set<Socket>();
  const relay = createServer((socket) => {
    open.add(socket.on('error', () => undefined));
    socket.pipe(connect(port, '127.0.0.1')).pipe(socket);
  });
  await once(relay.listen(0, '127.0.0.1'), 'listening');
  const address = relay.address() as AddressInfo;
  const url = `http://127.0.0.1:${address.port}`;
  await using agent = await overStdio({ ...stack, url }, dir.path);
  const list = async () => {
    const { content } = (await agent.client.callTool({ name: 'session_list' })) as Result;
    return content[0]?.text ?? '';
  };
  match(await list(), /session/i);
  relay.close();
  for (const socket of open) socket.destroy();
  match(await list(), /^cannot reach http:.* is the service running\?$/);
  await once(relay.listen(address.port, '127.0.0.1'), 'listening');
  match(await list(), /session/i);
  relay.close();
  for (const socket of open) socket.destroy();
});

journey('a wrong key and an unreachable service end the command with its sentence', async () => {
  const stack = await service.get();
  const started = (env: Record<string, string>) =>
    shell([process.execPath, BIN, 'mcp'], { cwd: '/', env });
  const wrong = await started({ TABERN_API_KEY: 'x', TABERN_BASE_URL: stack.url });
  equal([wrong.code, wrong.stdout], [1, '']);
  match(wrong.stderr, '401 Invalid API key.');
  const away = await started({ TABERN_API_KEY: 'x', TABERN_BASE_URL: 'http://127.0.0.1:1' });
  equal([away.code, away.stdout], [1, '']);
  match(away.stderr, /cannot reach .*is the service running/);
  const ended = await started({ TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url });
  equal([ended.code, ended.stdout, ended.stderr], [0, '', '']);
});

journey('the service of these tests leaves nothing', async () => {
  await (await shared)?.[Symbol.asyncDispose]();
  await service.end();
});

journey.run();
