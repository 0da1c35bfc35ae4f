/** Lists of the service that are paged by offset: functions, versions, builds, invocations. */
import { nearest } from '../../proto/common/settings/unknown.ts';
import { plain } from '../../proto/terminal/text.ts';
import { type Api, isObject, type Json } from './api.ts';
import { CliError } from './config.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Source: proto/spec/rest.md 2. */
const PAGE = 100;

/** Every row, newest first. `query` filters. */
export async function* pagedRows(
  api: Api,
  path: string,
  query: Readonly<Record<string, string>> = {},
): AsyncGenerator<Json> {
  for (let offset = 0; ; offset += PAGE) {
    const page = new URLSearchParams({ offset: String(offset), limit: String(PAGE), ...query });
    const { data, results = data } = await api.get(`${path}?${page}`);
    const rows = Array.isArray(results) ? results.filter(isObject) : [];
    yield* rows;
    if (rows.length < PAGE) return;
  }
}

/**
 * The id of a function, escaped for a path. Takes an id or a name; a UUID is always an id, and
 * needs no list.
 */
export async function functionIdOf(api: Api, argument: string): Promise<string> {
  if (UUID.test(argument)) return argument;
  const names: string[] = [];
  for await (const { id, name } of pagedRows(api, '/v1/functions')) {
    if (name === argument && typeof id === 'string') return encodeURIComponent(id);
    names.push(String(name));
  }
  throw new CliError(
    `there is no function ${plain(JSON.stringify(argument))}; ${hintOf(argument, names)}`,
  );
}

function hintOf(argument: string, names: readonly string[]): string {
  if (names.length === 0) return 'the project has none; `tabern publish` makes functions';
  const near = nearest(argument, names);
  if (near === undefined) return '`tabern functions list` shows the names';
  return `did you mean ${plain(JSON.stringify(near))}?`;
}
