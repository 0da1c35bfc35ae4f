/**
 * `tabern functions`, `invocations`, `builds`, `schedules`, `sessions`, `contexts`, `webhooks` and
 * `cancel`: requests for one resource or a list of them. With --json the response is printed
 * unchanged, otherwise formatted for people.
 */
import { ConfigError } from '../../proto/common/env.ts';
import { columns } from '../../proto/common/text-table.ts';
import { sizeText } from '../../proto/terminal/size.ts';
import { plain } from '../../proto/terminal/text.ts';
import {
  type Api,
  errorText,
  isObject,
  type Json,
  logLines,
  logText,
  openApi,
  parseJson,
} from './api.ts';
import { type Cli, type Options, runCli } from './config.ts';
import { functionIdOf, pagedRows } from './offset-pages.ts';

/** Rows of a list. Ours: for more, use the API. */
const ROWS_MAX = 10_000;
/** Source: the lists' own limit. */
const PAGE = { limit: '100' };

/** The arguments and options of a command. */
type Given = { words: readonly string[]; options: Options };
type Text = (json: Json) => string;
/** Resolves with the service's response, and its text for people. */
type Act = (api: Api, given: Given) => Promise<{ json: unknown; text: string }>;

const statusText: Text = ({ id, status }) => `${id} ${status}`;

/**
 * In a path, the arguments replace the words with a colon, in their order. A function is named by
 * its id or its name.
 */
const ACTIONS = {
  cancel: post('/v1/functions/invocations/:id/cancel', ({ status }) => plain(status)),
  'functions list': pages('/v1/functions', table('id', 'name', 'createdAt', 'updatedAt')),
  'functions get': get('/v1/functions/:function', fields),
  'functions versions': pages('/v1/functions/:function/versions', table('id', 'createdAt')),
  'invocations list': invocations,
  'invocations get': get('/v1/functions/invocations/:id', invocationText),
  'builds list': pages('/v1/functions/builds', table('id', 'status', 'createdAt', 'endedAt')),
  'builds get': get('/v1/functions/builds/:id', fields),
  'builds logs': get('/v1/functions/builds/:id/logs', (json) =>
    logLines(json)
      .map((line) => logText(line))
      .join('\n'),
  ),
  'schedules list': pages(
    '/v1/functions/:function/schedules',
    table('id', 'enabled', 'cron', 'timeZone', 'nextRunAt', 'lastRunAt'),
  ),
  'schedules get': get('/v1/functions/schedules/:id', fields),
  'schedules create': createSchedule,
  'schedules update': patch('/v1/functions/schedules/:id', scheduleRules),
  'schedules enable': patch('/v1/functions/schedules/:id', () => ({ enabled: true })),
  'schedules disable': patch('/v1/functions/schedules/:id', () => ({ enabled: false })),
  'schedules delete': remove('/v1/functions/schedules/:id'),
  'sessions list': get(
    '/v1/sessions',
    table('id', 'status', 'createdAt', 'endedAt', 'endReason'), // no pages
  ),
  'sessions get': get('/v1/sessions/:id', fields),
  'sessions create': post(
    '/v1/sessions',
    ({ id, connectUrl }) => `${id}\n${connectUrl}`,
    sessionBody,
  ),
  'sessions release': post('/v1/sessions/:id', member('id'), () => ({ status: 'REQUEST_RELEASE' })),
  'sessions logs': get('/v1/sessions/:id/logs', protocolLog),
  'sessions debug': get('/v1/sessions/:id/debug', member('debuggerFullscreenUrl')),
  'contexts list': list('/v1/contexts', table('id', 'name', 'createdAt', 'updatedAt')),
  'contexts get': get('/v1/contexts/:id', fields),
  'contexts create': post('/v1/contexts', member('id'), ({ words: [name] }) => ({ name })),
  'contexts delete': remove('/v1/contexts/:id'),
  'webhooks list': list('/v1/webhooks', table('id', 'status', 'endpoint', 'eventTypes')),
  'webhooks get': get('/v1/webhooks/:id', fields),
  'webhooks create': post('/v1/webhooks', ({ id, secret }) => `${id}\n${secret}`, webhookBody),
  'webhooks delete': remove('/v1/webhooks/:id'),
  'webhooks rotate': post('/v1/webhooks/:id/secret', member('secret'), ({ options }) => ({
    revokeImmediately: options['revoke'] === true,
  })),
  'webhooks enable': post('/v1/webhooks/:id/enable', statusText),
  'webhooks test': post('/v1/webhooks/:id/test', fields),
  'webhooks deliveries': list(
    '/v1/webhooks/:id/deliveries',
    table('id', 'status', 'eventType', 'resourceId', 'createdAt'),
  ),
  'webhooks redeliver': post('/v1/webhooks/:id/deliveries/:delivery/replay', statusText),
} as const satisfies Record<string, Act>;

export type Action = keyof typeof ACTIONS;

/** Exit code 0 when the request succeeded. */
export function run(action: Action, words: readonly string[], options: Options): Promise<number> {
  return runCli(options, (cli) => act(action, { words, options, cli }));
}

export async function act(action: Action, given: Given & { cli: Cli }): Promise<number> {
  const { cli, options } = given;
  const { json, text } = await ACTIONS[action](openApi(cli), given);
  cli.print(options['json'] === true ? JSON.stringify(json) : text);
  return 0;
}

// --- requests ---

function get(path: string, text: Text): Act {
  return async (api, given) => {
    const json = await api.get(urlOf(await withFunction(api, path, given), given));
    return { json, text: text(json) };
  };
}

function post(path: string, text: Text, body: (given: Given) => Json = () => ({})): Act {
  return async (api, given) => {
    const json = await api.post(urlOf(path, given), body(given));
    return { json, text: text(json) };
  };
}

function patch(path: string, body: (given: Given) => Json): Act {
  return async (api, given) => {
    const json = await api.patch(urlOf(path, given), body(given));
    return { json, text: String(json['id']) };
  };
}

/** The function is named by its id or its name. */
async function createSchedule(api: Api, given: Given): ReturnType<Act> {
  const [name = '', cron] = given.words;
  const path = `/v1/functions/${await functionIdOf(api, name)}/schedules`;
  const enabled = given.options['disabled'] !== true;
  const json = await api.post(path, { ...scheduleRules(given), cron, enabled });
  return { json, text: String(json['id']) };
}

function remove(path: string): Act {
  return async (api, given) => {
    await api.remove(urlOf(path, given));
    const [id = ''] = given.words;
    return { json: { id }, text: id };
  };
}

/** All pages of a list. */
function list(path: string, text: (json: readonly Json[]) => string): Act {
  return async (api, given) => {
    const json: Json[] = [];
    let cursor = {};
    for (;;) {
      const { data, nextCursor } = await api.get(urlOf(path, given, { ...PAGE, ...cursor }));
      json.push(...rowsOf(data));
      if (typeof nextCursor !== 'string' || json.length >= ROWS_MAX) break;
      cursor = { cursor: nextCursor };
    }
    return { json, text: text(json) };
  };
}

/** All rows of a list that is paged by offset. */
function pages(path: string, text: (json: readonly Json[]) => string): Act {
  return async (api, given) => {
    const filled = pathOf(await withFunction(api, path, given), given.words);
    const json = await collected(pagedRows(api, filled, statusOf(given)));
    return { json, text: text(json) };
  };
}

/** The invocations of all versions of a function. */
async function invocations(api: Api, given: Given): ReturnType<Act> {
  const id = await functionIdOf(api, given.words[0] ?? '');
  async function* all() {
    for await (const version of pagedRows(api, `/v1/functions/${id}/versions`)) {
      yield* pagedRows(api, `/v1/functions/versions/${version['id']}/invocations`, statusOf(given));
    }
  }
  const json = await collected(all());
  return { json, text: table('id', 'status', 'createdAt', 'endedAt')(json) };
}

/** The path with the id of the function that the argument names. */
async function withFunction(api: Api, path: string, { words }: Given): Promise<string> {
  if (!path.includes(':function')) return path;
  return path.replace(':function', await functionIdOf(api, words[0] ?? ''));
}

async function collected(rows: AsyncIterable<Json>): Promise<Json[]> {
  const found: Json[] = [];
  for await (const row of rows) {
    found.push(row);
    if (found.length >= ROWS_MAX) break;
  }
  return found;
}

/** The path with the arguments, the filter of --status and the query of a page. */
function urlOf(path: string, given: Given, page = {}): string {
  const query = new URLSearchParams({ ...page, ...statusOf(given) });
  const filled = pathOf(path, given.words);
  return query.size === 0 ? filled : `${filled}?${query}`;
}

function pathOf(path: string, words: readonly string[]): string {
  const rest = words.values();
  return path.replace(/:[a-z]+/g, () => encodeURIComponent(rest.next().value ?? ''));
}

function statusOf({ options }: Given): Readonly<Record<string, string>> {
  const status = flag(options, 'status');
  return status === undefined ? {} : { status };
}

function sessionBody({ options }: Given): Json {
  const timeout = flag(options, 'timeout');
  const id = flag(options, 'context');
  const persist = options['persist'] === true;
  return {
    ...jsonOption('--body', flag(options, 'body') ?? '{}'),
    ...(timeout !== undefined && { timeout: seconds(timeout) }),
    ...(options['keepAlive'] === true && { keepAlive: true }),
    ...(id !== undefined && { browserSettings: { context: { id, persist } } }),
  };
}

function scheduleRules({ options }: Given): Json {
  const params = flag(options, 'params');
  const rules = ['cron', 'timeZone', 'overlap', 'catchUp'].map((name) => [
    name,
    flag(options, name),
  ]);
  return {
    ...Object.fromEntries(rules.filter(([, value]) => value !== undefined)),
    ...(params !== undefined && { params: jsonOption('--params', params) }),
  };
}

function jsonOption(name: string, text: string): Json {
  const body = parseJson(text);
  if (body === undefined) throw new ConfigError(`${name} is not valid JSON`);
  if (!isObject(body)) throw new ConfigError(`${name} must be a JSON object`);
  return body;
}

function seconds(timeout: string): number {
  if (!/^\d{1,9}$/.test(timeout)) throw new ConfigError('--timeout must be a whole number');
  return Number(timeout);
}

function webhookBody({ words: [endpoint = ''], options }: Given): Json {
  const types = (flag(options, 'events') ?? '').split(',');
  return { endpoint, eventTypes: types.map((type) => type.trim()) };
}

function flag(options: Options, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

// --- text for people ---

function member(name: string): Text {
  return (json) => String(json[name]);
}

function table(...keys: readonly string[]): (json: unknown) => string {
  const head = keys.map((key) => key.replace(/(?=[A-Z])/g, ' ').toUpperCase());
  return (json) =>
    columns(
      head,
      rowsOf(json).map((row) => keys.map((key) => row[key])),
    );
}

function fields(json: Json): string {
  const cells = Object.entries(json)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => [key, cellOf(key, value)]);
  return columns(['FIELD', 'VALUE'], cells);
}

function cellOf(key: string, value: unknown): unknown {
  if (typeof value === 'number' && key.endsWith('Bytes')) return sizeText(value);
  return typeof value === 'object' ? JSON.stringify(value) : value;
}

/** The error of a failed one follows the fields, in lines. */
function invocationText({ cause, ...rest }: Json): string {
  if (!isObject(cause)) return fields(rest);
  return `${fields({ ...rest, cause: cause['code'] })}\n\n${errorText(cause, process.stdout)}`;
}

function protocolLog(json: Json): string {
  const lines = rowsOf(json).map(({ timestamp, method }) => [timeText(timestamp), method]);
  return columns(['TIME', 'METHOD'], lines);
}

function timeText(value: unknown): string {
  return typeof value === 'number' ? new Date(value).toISOString() : '-';
}

function rowsOf(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}
