/**
 * The tools of @playwright/mcp for the browser of one session, in a process of their own on this
 * machine. The connectUrl is passed in its environment, since other users can read a command line.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  type CallToolRequestParams,
  type CallToolResult,
  Client,
  type Tool,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const PACKAGE = '@playwright/mcp';
/** Ours: a browser tool may wait for a page, and the agent aborts a call itself. */
const CALL_TIMEOUT_MS = 300_000;

export type BrowserTools = AsyncDisposable & {
  tools: readonly Tool[];
  call(params: ToolCall, signal: AbortSignal): Promise<CallToolResult>;
};
export type ToolCall = Pick<CallToolRequestParams, 'name' | 'arguments'>;

type Options = {
  /** The command of @playwright/mcp. */
  command: string;
  connectUrl: string;
  /** More variables, such as settings of @playwright/mcp. */
  env: Readonly<Record<string, string>>;
  /** Called when the process has ended by itself. */
  onExit(): void;
};

/** Its command: the package beside this program, or in the given directory. */
export function playwrightMcpIn(cwd: string): string | undefined {
  for (const from of [import.meta.url, join(cwd, 'package.json')]) {
    try {
      const manifest = createRequire(from).resolve(`${PACKAGE}/package.json`);
      return join(dirname(manifest), 'cli.js');
    } catch {
      // not installed there
    }
  }
  return undefined;
}

/** Starts the process and reads its tools. It connects to the browser at the first call. */
export async function openBrowserTools(options: Options): Promise<BrowserTools> {
  const { command, connectUrl, env, onExit } = options;
  const client = new Client({ name: 'tabern', version: '1' });
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [command],
      env: { ...env, PLAYWRIGHT_MCP_CDP_ENDPOINT: connectUrl },
      stderr: 'ignore', // it may have the connectUrl
    }),
  );
  const { tools } = await client.listTools();
  client.onclose = onExit;
  return {
    tools,
    call: (params, signal) => client.callTool(params, { signal, timeout: CALL_TIMEOUT_MS }),
    async [Symbol.asyncDispose]() {
      client.onclose = () => undefined;
      await client.close();
    },
  };
}
