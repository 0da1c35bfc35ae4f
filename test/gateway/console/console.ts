/** A gateway before a whole core, whose clock the test moves, and a browser's requests to it. */
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gatewayConfig } from '../../../gateway/config.ts';
import { type GatewayParts, startGateway } from '../../../gateway/main.ts';
import { readConsole } from '../../../gateway/routes/console/pages.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { type Booted, boot, KEY } from '../../core/boot.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

export { KEY } from '../../core/boot.ts';

export type Answer = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  /** The parsed body; undefined when it is no JSON object. */
  json: Record<string, unknown> | undefined;
};

type Sent = {
  headers?: Record<string, string> | undefined;
  /** A JSON body. */
  body?: unknown;
  /** The client's own address. */
  from?: string | undefined;
};

export type Console = AsyncDisposable & {
  app: Booted;
  url: string;
  hasConsole: boolean;
  /** A request without any header of a browser. */
  send(method: string, path: string, sent?: Sent): Promise<Answer>;
  /** A request as a page of the console sends it, with that cookie. */
  browse(method: string, path: string, sent?: Sent & { cookie?: string }): Promise<Answer>;
  /** The cookie of a login by that key. */
  logIn(apiKey?: string): Promise<string>;
  /** A one-time code for the project. */
  code(project?: string): Promise<string>;
  /** A new key of the project, and its public part. */
  key(project: string): Promise<{ key: string; id: string }>;
};

/** The page's files in a test, by their paths below the folder. */
export type PageFiles = Record<string, string>;

export async function openConsole(
  options: { env?: Record<string, string>; files?: PageFiles; heartbeatMs?: number } = {},
): Promise<Console> {
  const { env = {}, files = {}, heartbeatMs } = options;
  await using opened = new AsyncDisposableStack();
  const temp = opened.use(tempDirectory());
  writeTree(temp.path, files);
  const app = opened.use(await boot());
  const config = gatewayConfig({ TABERN_PORT: '0', ...env });
  const page = readConsole(pathToFileURL(join(temp.path, '/')));
  const parts: GatewayParts = {
    clients: app.clients,
    gatewayToken: must(app.asGateway.metadata?.['authorization'], 'a token').slice(7),
    log: openLog({ role: 'test', level: 'silent' }),
    console: { files: page, ...(heartbeatMs && { heartbeatMs }) },
  };
  const gateway = opened.use(await startGateway(config, parts));
  const { url, hasConsole } = gateway;
  const { operators } = app.clients;

  const send: Console['send'] = (method, path, sent) => ask(url, { method, path, ...sent });
  const browse: Console['browse'] = (method, path, { cookie, headers, ...sent } = {}) => {
    const own = { 'sec-fetch-site': 'same-origin', ...(method !== 'GET' && { origin: url }) };
    const all = { ...own, ...(cookie !== undefined && { cookie }), ...headers };
    return send(method, path, { ...sent, headers: all });
  };
  const kept = opened.move();
  return {
    app,
    url,
    hasConsole,
    send,
    browse,
    async logIn(apiKey = KEY) {
      return cookieOf(await browse('POST', '/console/login', { body: { apiKey } }));
    },
    async code(project = 'default') {
      return (await operators.createConsoleCode({ project }, app.asOperator)).code;
    },
    async key(project) {
      const made = await operators.createApiKey({ project, name: '' }, app.asOperator);
      return { key: made.key, id: must(made.apiKey, 'key').id };
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** `name=value` of the cookie that the answer sets. */
export function cookieOf({ status, headers, body }: Answer): string {
  const [set = ''] = headers['set-cookie'] ?? [];
  if (set === '') throw new Error(`no cookie in ${status}: ${body}`);
  return set.split(';')[0] ?? '';
}

/** The JSON body of an error. */
export function messageOf({ json }: Answer): string {
  return String(json?.['message']);
}

function ask(
  url: string,
  { method, path, headers, body, from }: Sent & { method: string; path: string },
): Promise<Answer> {
  const { hostname, port, host } = new URL(url);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const typed = text === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path, agent: false, localAddress: from };
    const sent = httpRequest({ ...options, headers: { host, ...typed, ...headers } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const isJson = answer.headers['content-type']?.startsWith('application/json') === true;
        const json = isJson && bytes.length > 0 ? JSON.parse(bytes.toString()) : undefined;
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: bytes, json });
      });
    });
    sent.on('error', reject);
    sent.end(text);
  });
}
