/** Paths and queries of the console, and what they show. Pure. */

export type PageName =
  | 'overview'
  | 'sessions'
  | 'session'
  | 'functions'
  | 'function'
  | 'publish'
  | 'builds'
  | 'build'
  | 'runs'
  | 'run'
  | 'webhooks'
  | 'webhook'
  | 'share'
  | 'contexts'
  | 'files'
  | 'usage'
  | 'settings'
  | 'operator'
  | 'audit'
  | 'unknown';
/** `projectId` and `id` are empty where the path has none; below `/operator`, `id` is the rest. */
export type Route = { page: PageName; projectId: string; id: string; query: URLSearchParams };

const LISTS: Record<string, PageName> = {
  '': 'overview',
  sessions: 'sessions',
  functions: 'functions',
  publish: 'publish',
  builds: 'builds',
  runs: 'runs',
  webhooks: 'webhooks',
  contexts: 'contexts',
  files: 'files',
  usage: 'usage',
  settings: 'settings',
  audit: 'audit',
};
const DETAILS: Record<string, PageName> = {
  sessions: 'session',
  runs: 'run',
  webhooks: 'webhook',
  functions: 'function',
  builds: 'build',
};
/** The path that all others begin with. */
export const ROOT = '/console';

/** A link to one session; its token is the fragment. */
export const SHARE = `${ROOT}/share`;

/** The route of a path below /console, and of its query. */
export function routeOf(path: string, search: string): Route {
  const query = new URLSearchParams(search);
  const parts = path.slice(ROOT.length).split('/').filter(Boolean);
  if (parts.length === 0 || parts[0] === 'login')
    return { page: 'overview', projectId: '', id: '', query };
  if (path === SHARE) return { page: 'share', projectId: '', id: '', query };
  if (parts[0] === 'operator') {
    return { page: 'operator', projectId: '', id: parts.slice(1).join('/'), query };
  }
  const [p, projectId = '', list = '', id = '', ...rest] = parts;
  const isKnown = p === 'p' && projectId !== '' && rest.length === 0;
  const page = (id === '' ? own(LISTS, list) : own(DETAILS, list)) ?? 'unknown';
  return { page: isKnown ? page : 'unknown', projectId, id, query };
}

/** The path of a page of the operator, or of one object in it. */
export function operatorPath(list = '', id = ''): string {
  return [`${ROOT}/operator`, list, id].filter((part) => part !== '').join('/');
}

/** The path of a list, or of one object in it. */
export function pathOf(projectId: string, list = '', id = ''): string {
  return [`${ROOT}/p`, projectId, list, id].filter((part) => part !== '').join('/');
}

function own<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
