/**
 * `tabern sessions`, `contexts` and `webhooks`: a project's objects, over the public interface.
 * With --json the response is printed unchanged, otherwise formatted for people.
 */

import { ConfigError } from '../../proto/common/env.ts';
import { columns } from '../../proto/common/text-table.ts';
import { type Api, type Json, openApi } from './api.ts';
import { type Cli, type Options, runCli } from './config.ts';

/** Rows of a list. Ours: for more, use the API. */
const ROWS_MAX = 10_000;
/** Source: the lists' own limit. */
const PAGE = 100;

type Asked = { api: Api; words: readonly string[]; options: Options };
/** The service's response, and its text for people. */
type Answered = { json: unknown; text: string };
type Act = (asked: Asked) => Promise<Answered>;

const id = ({ words }: Asked): string => encodeURIComponent(words[0] ?? '');
const flag = ({ options }: Asked, name: string): string | undefined => {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
};

const ACTIONS = {
  'sessions list': list('/v1/sessions', ['id', 'status', 'createdAt', 'endedAt', 'endReason']),
  'sessions get': get('/v1/sessions'),
  async 'sessions create'(asked) {
    const { options } = asked;
    const timeout = flag(asked, 'timeout');
    const context = flag(asked, 'context');
    const body = {
      ...parsed(flag(asked, 'body'), '--body'),
      ...(timeout === undefined ? {} : { timeout: whole(timeout, '--timeout') }),
      ...(options['keepAlive'] === true ? { keepAlive: true } : {}),
      ...(context === undefined
        ? {}
        : { browserSettings: { context: { id: context, persist: options['persist'] === true } } }),
    };
    const json = await asked.api.post('/v1/sessions', body);
    return { json, text: `${json['id']}\n${json['connectUrl']}` };
  },
  async 'sessions release'(asked) {
    const body = { status: 'REQUEST_RELEASE' };
    const json = await asked.api.post(`/v1/sessions/${id(asked)}`, body);
    return { json, text: String(json['id']) };
  },
  async 'sessions logs'(asked) {
    const json = await asked.api.get(`/v1/sessions/${id(asked)}/logs`);
    const lines = rowsOf(json).map((line) => [timeOf(line['timestamp']), line['method']]);
    return { json, text: columns(['TIME', 'METHOD'], lines) };
  },
  async 'sessions debug'(asked) {
    const json = await asked.api.get(`/v1/sessions/${id(asked)}/debug`);
    return { json, text: String(json['debuggerFullscreenUrl']) };
  },
  'contexts list': list('/v1/contexts', ['id', 'name', 'createdAt', 'updatedAt']),
  'contexts get': get('/v1/contexts'),
  async 'contexts create'({ api, words: [name] }) {
    const json = await api.post('/v1/contexts', name === undefined ? {} : { name });
    return { json, text: String(json['id']) };
  },
  'contexts delete': remove('/v1/contexts'),
  'webhooks list': list('/v1/webhooks', ['id', 'status', 'endpoint', 'eventTypes']),
  'webhooks get': get('/v1/webhooks'),
  async 'webhooks create'(asked) {
    const eventTypes = (flag(asked, 'events') ?? '').split(',').map((type) => type.trim());
    const body = { endpoint: asked.words[0] ?? '', eventTypes };
    const json = await asked.api.post('/v1/webhooks', body);
    return { json, text: `${json['id']}\n${json['secret']}` };
  },
  'webhooks delete': remove('/v1/webhooks'),
  async 'webhooks rotate'(asked) {
    const body = { revokeImmediately: asked.options['revoke'] === true };
    const json = await asked.api.post(`/v1/webhooks/${id(asked)}/secret`, body);
    return { json, text: String(json['secret']) };
  },
  async 'webhooks enable'(asked) {
    const json = await asked.api.post(`/v1/webhooks/${id(asked)}/enable`, {});
    return { json, text: `${json['id']} ${json['status']}` };
  },
  async 'webhooks test'(asked) {
    const json = await asked.api.post(`/v1/webhooks/${id(asked)}/test`, {});
    return { json, text: fields(json) };
  },
  async 'webhooks deliveries'(asked) {
    const status = flag(asked, 'status');
    const query = status === undefined ? '' : `&status=${encodeURIComponent(status)}`;
    const json = await all(asked.api, `/v1/webhooks/${id(asked)}/deliveries`, query);
    const keys = ['id', 'status', 'eventType', 'resourceId', 'createdAt'];
    return { json, text: rows(json, keys) };
  },
  async 'webhooks redeliver'(asked) {
    const delivery = encodeURIComponent(asked.words[1] ?? '');
    const path = `/v1/webhooks/${id(asked)}/deliveries/${delivery}/replay`;
    const json = await asked.api.post(path, {});
    return { json, text: `${json['id']} ${json['status']}` };
  },
} as const satisfies Record<string, Act>;

export type Action = keyof typeof ACTIONS;

/** Exit code 0 when the request succeeded. */
export function run(action: Action, words: readonly string[], options: Options): Promise<number> {
  return runCli(options, (cli) => act(action, { words, options, cli }));
}

export async function act(
  action: Action,
  { cli, ...asked }: { words: readonly string[]; options: Options; cli: Cli },
): Promise<number> {
  const answered = await ACTIONS[action]({ ...asked, api: openApi(cli) });
  cli.print(asked.options['json'] === true ? JSON.stringify(answered.json) : answered.text);
  return 0;
}

function list(path: string, keys: readonly string[]): Act {
  return async (asked) => {
    const status = flag(asked, 'status');
    const query = status === undefined ? '' : `&status=${encodeURIComponent(status)}`;
    const isWhole = path === '/v1/sessions';
    const json = isWhole ? await onePage(asked, query) : await all(asked.api, path, query);
    return { json, text: rows(json, keys) };
  };
}

/** The list of sessions has no pages. */
async function onePage({ api }: Asked, query: string): Promise<Json[]> {
  return rowsOf(await api.get(`/v1/sessions${query.replace('&', '?')}`));
}

/** Every page. */
async function all(api: Api, path: string, query = ''): Promise<Json[]> {
  const found: Json[] = [];
  for (let cursor = ''; ; ) {
    const page = await api.get(`${path}?limit=${PAGE}${query}${cursor}`);
    found.push(...rowsOf(page['data']));
    const next = page['nextCursor'];
    if (typeof next !== 'string' || found.length >= ROWS_MAX) return found;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}

function get(path: string): Act {
  return async (asked) => {
    const json = await asked.api.get(`${path}/${id(asked)}`);
    return { json, text: fields(json) };
  };
}

function remove(path: string): Act {
  return async (asked) => {
    await asked.api.remove(`${path}/${id(asked)}`);
    const [gone = ''] = asked.words;
    return { json: { id: gone }, text: gone };
  };
}

function rows(json: readonly Json[], keys: readonly string[]): string {
  const head = keys.map((key) => key.replace(/(?=[A-Z])/g, ' ').toUpperCase());
  const cells = json.map((row) => keys.map((key) => row[key]));
  return columns(head, cells);
}

function fields(json: Json): string {
  const lines = Object.entries(json).filter(([, value]) => value !== null);
  const cells = lines.map(([key, value]) => [
    key,
    typeof value === 'object' ? JSON.stringify(value) : value,
  ]);
  return columns(['FIELD', 'VALUE'], cells);
}

function rowsOf(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

function timeOf(value: unknown): string {
  return typeof value === 'number' ? new Date(value).toISOString() : '-';
}

function whole(text: string, name: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new ConfigError(`${name} must be a whole number`);
}

function parsed(text: string | undefined, name: string): Json {
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
  } catch (cause) {
    throw new ConfigError(`${name} is not valid JSON`, { cause });
  }
  throw new ConfigError(`${name} must be a JSON object`);
}
