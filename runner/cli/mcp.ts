/**
 * `tabern mcp`: tools for an agent on this machine, by the Model Context Protocol over stdio. The
 * service's own tools are those of its POST /mcp, which each call reaches. While a session runs
 * that was started here, the tools of @playwright/mcp drive its browser. These sessions end with
 * the command.
 */
import { once } from 'node:events';
import {
  type CallToolResult,
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type Api, openApi, reach } from './api.ts';
import {
  type BrowserTools,
  openBrowserTools,
  playwrightMcpIn,
  type ToolCall,
} from './browser-tools.ts';
import { browserToolsEnv, type Cli, type Options, runCli, signalOf } from './config.ts';

/** Ours: above the 150 s of a one-shot. */
const CALL_TIMEOUT_MS = 180_000;
/** Ours: of the end of a session, when the command ends. */
const END_TIMEOUT_MS = 5_000;
const INSTALL =
  'Browser tools need the package @playwright/mcp: install it beside tabern (`npm install -g ' +
  '@playwright/mcp`) or in the directory of this command, then start a session again.';
const FAILED = 'The session runs without browser tools: @playwright/mcp did not start.';
/** How the names of the tools of @playwright/mcp begin. */
const BROWSER_TOOL = 'browser_';
const UNATTACHED =
  'Browser tools need a session: call session_start. They end with the session, or when another ' +
  'one is started.';

type Attached = { sessionId: string; browser: BrowserTools };
type Parts = { cli: Cli; api: Api; service: Client; version: string };

export function run(options: Options, version: string): Promise<number> {
  return runCli(options, (cli) => serve(cli, version));
}

async function serve(cli: Cli, version: string): Promise<number> {
  const api = openApi(cli);
  // An unreachable service or a wrong key is an error of the command, with the commands' messages.
  await api.get('/v1/projects');
  const service = new Client({ name: 'tabern', version });
  const headers = { authorization: `Bearer ${cli.apiKey}` };
  await service.connect(
    new StreamableHTTPClientTransport(new URL(`${cli.baseUrl}/mcp`), {
      requestInit: { headers },
      fetch: (_, init = {}) => reach(cli.baseUrl, '/mcp', init),
    }),
  );
  await using bridge = openBridge({ cli, api, service, version });
  const stdio = serveStdio(() => bridge.open());
  const signal = signalOf('SIGINT', 'SIGTERM');
  await Promise.race(['end', 'close'].map((event) => once(process.stdin, event, { signal }))).catch(
    (error: unknown) => {
      if (!signal.aborted) throw error;
    },
  );
  await stdio.close();
  return 0;
}

type Bridge = AsyncDisposable & { open(): Server };

/** Its servers share the sessions and the browser tools. */
function openBridge(parts: Parts): Bridge {
  const { api, service, version } = parts;
  const started = new Set<string>();
  let attached: Attached | undefined;
  let server: Server | undefined;

  async function attach(next: Attached | undefined): Promise<void> {
    const before = attached;
    attached = next;
    await before?.browser[Symbol.asyncDispose]();
    // A client that has disconnected needs no notification.
    await server?.sendToolListChanged().catch(() => undefined);
  }

  async function onStart(result: CallToolResult): Promise<CallToolResult> {
    const sessionId = idIn(result);
    started.add(sessionId);
    const onExit = () => {
      if (attached?.sessionId === sessionId) void attach(undefined);
    };
    const browser = await browserOf(sessionId, parts, onExit).catch((error: Error) => error);
    if (browser === undefined) return noted(result, INSTALL);
    if (browser instanceof Error) return noted(result, `${FAILED} ${browser.message}`);
    await attach({ sessionId, browser });
    const names = browser.tools.slice(0, 3).map(({ name }) => name);
    return noted(result, `The tools ${names.join(', ')}, ... now drive this session's browser.`);
  }

  async function call(params: ToolCall, signal: AbortSignal): Promise<CallToolResult> {
    const browser = attached?.browser;
    if (browser === undefined && params.name.startsWith(BROWSER_TOOL)) throw new Error(UNATTACHED);
    if (browser?.tools.some(({ name }) => name === params.name))
      return browser.call(params, signal);
    const result = await service.callTool(params, { signal, timeout: CALL_TIMEOUT_MS });
    if (result.isError) return result;
    if (params.name === 'session_start') return await onStart(result);
    if (params.name === 'session_end') {
      started.delete(idIn(result));
      if (attached?.sessionId === idIn(result)) await attach(undefined);
    }
    return result;
  }

  return {
    open() {
      server = new Server(
        { name: 'tabern', version },
        {
          capabilities: { tools: { listChanged: true } },
          instructions: service.getInstructions() ?? '',
        },
      );
      server.setRequestHandler('tools/list', async () => {
        const { tools } = await service.listTools();
        return { tools: [...tools, ...(attached?.browser.tools ?? [])] };
      });
      server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
        const { name, arguments: given } = params; // without what is between this client and server
        return call({ name, arguments: given }, mcpReq.signal).catch(asResult);
      });
      return server;
    },
    async [Symbol.asyncDispose]() {
      server = undefined;
      await attach(undefined);
      await endSessions(api, started);
      await service.close();
    },
  };
}

/** Undefined without the package. */
async function browserOf(
  sessionId: string,
  { api, cli }: Parts,
  onExit: () => void,
): Promise<BrowserTools | undefined> {
  const command = playwrightMcpIn(cli.cwd);
  if (command === undefined) return undefined;
  const session = await api.get(`/v1/sessions/${encodeURIComponent(sessionId)}`);
  const connectUrl = String(session['connectUrl']);
  return await openBrowserTools({ command, connectUrl, env: browserToolsEnv(), onExit });
}

async function endSessions(api: Api, ids: ReadonlySet<string>): Promise<void> {
  const ends = [...ids].map((id) =>
    api.post(`/v1/sessions/${encodeURIComponent(id)}`, { status: 'REQUEST_RELEASE' }),
  );
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, END_TIMEOUT_MS);
  // A session that has ended, or a service that is gone, changes nothing.
  await Promise.race([Promise.allSettled(ends), late]);
  clearTimeout(timer);
}

function idIn({ structuredContent }: CallToolResult): string {
  const { sessionId } = (structuredContent ?? {}) as { sessionId?: unknown };
  return String(sessionId);
}

function noted(result: CallToolResult, text: string): CallToolResult {
  return { ...result, content: [...result.content, { type: 'text', text }] };
}

/** Errors of the protocol, such as an unknown tool, stay errors. */
function asResult(error: unknown): CallToolResult {
  if (error instanceof ProtocolError) throw error;
  const { message } = error as Error;
  return { content: [{ type: 'text', text: message }], isError: true };
}
