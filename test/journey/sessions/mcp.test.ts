/** Tools for agents, over real browsers: the official client and the inspector at POST /mcp. */
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { publish } from '../../support/clients/functions.ts';
import { shell, userProject } from '../../support/clients/journey.ts';
import { openPerson } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/mcp');
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

/** The project with the packages of agents, installed. */
async function installed() {
  const project = userProject('mcp');
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  const own = process.env as Record<string, string>; // for the npm registry
  const { code, stderr } = await shell(['npm', 'ci', ...flags], { cwd: project.path, env: own });
  is(code, 0, stderr);
  return project;
}

journey('the inspector lists the tools without a problem, and calls one', async () => {
  const stack = await service.get();
  await using project = await installed();
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

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
