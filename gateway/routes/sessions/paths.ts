/**
 * OpenAPI descriptions of routes outside /v1 without a key header: connections to a session's
 * browser, the routes of discovery.ts with their WebSockets, and live view pages.
 */
import {
  ASSET,
  answers,
  CREDENTIALS,
  FAILURE,
  ID,
  inPath,
  json,
  keyless,
  query,
  TEXT,
  texts,
  upgrade,
} from '../openapi-parts.ts';

const VERSION = texts(
  ...['Browser', 'Protocol-Version', 'User-Agent', 'V8-Version', 'webSocketDebuggerUrl'],
);
const TARGET = texts(...['id', 'type', 'title', 'url', 'description', 'webSocketDebuggerUrl']);
const PROTOCOL = { type: 'object', properties: {}, additionalProperties: true };
const PLAIN = { 'text/plain': TEXT };
const URL_OF_PAGE = query('url', 'URL of the page; as in Chrome, the query itself may be the URL.');

type Route = { summary: string; content: object; parameters?: object[]; method?: 'put' };

const ROUTES: Readonly<Record<string, Route>> = {
  '/json/version': { summary: 'The WebSocket URL of a session.', content: json(VERSION) },
  '/json/version/': { summary: 'The same.', content: json(VERSION) },
  '/json': { summary: 'The targets.', content: json({ type: 'array', items: TARGET }) },
  '/json/list': { summary: 'The targets.', content: json({ type: 'array', items: TARGET }) },
  '/json/new': {
    summary: 'Opens a page.',
    method: 'put',
    content: json(TARGET),
    parameters: [URL_OF_PAGE],
  },
  '/json/activate/{id}': { summary: 'Shows a page.', content: PLAIN, parameters: [ID] },
  '/json/close/{id}': { summary: 'Closes a target.', content: PLAIN, parameters: [ID] },
  '/json/protocol': { summary: 'The protocol, as JSON.', content: json(PROTOCOL) },
};

function discovered(operationId: string, { summary, content, parameters = [], method }: Route) {
  const { get } = keyless(operationId, summary, {
    parameters: [...parameters, ...CREDENTIALS],
    responses: answers("Chrome's answer.", content),
  });
  return { [method ?? 'get']: get };
}

const DISCOVERY_PATHS: Readonly<Record<string, object>> = Object.fromEntries(
  ['', '/connect'].flatMap((base) => {
    const named = (path: string): string => {
      const slash = path.endsWith('/') ? ' slash' : '';
      return `${base}${path}${slash}`.replace(/\W+(\w?)/g, (_, letter) => letter.toUpperCase());
    };
    const summary = 'CDP connection to one target of a session, or to its browser.';
    return [
      ...Object.entries(ROUTES).map(([path, route]) => {
        return [`${base}${path}`, discovered(named(path), route)] as const;
      }),
      ...['/devtools/page/{id}', '/devtools/browser/{id}'].map((path) => {
        return [`${base}${path}`, upgrade(named(path), summary, [ID, ...CREDENTIALS])] as const;
      }),
    ];
  }),
);

const TOKEN = query('token', 'Token of the live view, from GET /v1/sessions/{id}/debug.', true);
const STATUS = {
  type: 'object',
  required: ['status'],
  properties: {
    status: { const: 'RUNNING' },
    expiresAt: { type: 'string', format: 'date-time' },
  },
};

export const BROWSER_PATHS = {
  '/': upgrade('connectByKey', 'CDP connection to a session, or to a new one.', CREDENTIALS),
  '/connect': upgrade('connect', 'CDP connection to a session: its connectUrl.', CREDENTIALS),
  '/view': upgrade('view', 'WebSocket of a live view.', [TOKEN]),
  ...DISCOVERY_PATHS,
  '/live': keyless('live', 'The page of a live view: debuggerUrl.', {
    parameters: [TOKEN],
    responses: {
      200: { description: 'HTML.', content: { 'text/html': TEXT } },
      default: {
        description: 'A page with the reason, or an error for clients that accept JSON.',
        content: { ...FAILURE.content, 'text/html': TEXT },
      },
    },
  }),
  '/live/status': keyless(
    'liveStatus',
    'Why a live view was refused, since browsers hide the reason.',
    {
      parameters: [TOKEN],
      responses: answers('It runs.', json(STATUS)),
    },
  ),
  '/live/{file}': keyless('liveFile', 'An asset of the live view page.', {
    parameters: [inPath('file')],
    responses: answers('A script or a style sheet.', ASSET),
  }),
};
