/** OpenAPI descriptions of the routes of discovery.ts and of their WebSockets. */
import { CREDENTIALS, FAILURE, ID, query, TEXT, upgrade } from '../openapi-parts.ts';

const strings = (...names: string[]) => ({
  type: 'object',
  required: names,
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
});
const VERSION = strings(
  ...['Browser', 'Protocol-Version', 'User-Agent', 'V8-Version', 'webSocketDebuggerUrl'],
);
const TARGET = strings(...['id', 'type', 'title', 'url', 'description', 'webSocketDebuggerUrl']);
const PROTOCOL = { type: 'object', properties: {}, additionalProperties: true };
const json = (schema: object) => ({ 'application/json': { schema } });
const text = { 'text/plain': TEXT };

type Route = { summary: string; content: object; parameters?: object[]; method?: 'get' | 'put' };

const ROUTES: Readonly<Record<string, Route>> = {
  '/json/version': { summary: 'The WebSocket URL of a session.', content: json(VERSION) },
  '/json/version/': { summary: 'The same.', content: json(VERSION) },
  '/json': { summary: 'The targets.', content: json({ type: 'array', items: TARGET }) },
  '/json/list': { summary: 'The targets.', content: json({ type: 'array', items: TARGET }) },
  '/json/new': {
    summary: 'Opens a page.',
    method: 'put',
    content: json(TARGET),
    parameters: [query('url', 'URL of the page; as in Chrome, the query itself may be the URL.')],
  },
  '/json/activate/{id}': { summary: 'Shows a page.', content: text, parameters: [ID] },
  '/json/close/{id}': { summary: 'Closes a target.', content: text, parameters: [ID] },
  '/json/protocol': { summary: 'The protocol, as JSON.', content: json(PROTOCOL) },
};

function described(operationId: string, { summary, content, parameters = [], method }: Route) {
  return {
    [method ?? 'get']: {
      operationId,
      summary,
      security: [],
      parameters: [...parameters, ...CREDENTIALS],
      responses: { 200: { description: "Chrome's answer.", content }, default: FAILURE },
    },
  };
}

export const DISCOVERY_PATHS: Readonly<Record<string, object>> = Object.fromEntries(
  ['', '/connect'].flatMap((base) => {
    const named = (path: string): string => {
      const isSlashed = path.endsWith('/') ? ' slash' : '';
      return `${base}${path}${isSlashed}`.replace(/\W+(\w?)/g, (_, letter) => letter.toUpperCase());
    };
    const summary = 'CDP connection to one target of a session, or to its browser.';
    return [
      ...Object.entries(ROUTES).map(([path, route]) => {
        return [`${base}${path}`, described(named(path), route)] as const;
      }),
      ...['page', 'browser'].map((kind) => {
        const path = `/devtools/${kind}/{id}`;
        return [`${base}${path}`, upgrade(named(path), summary, [ID, ...CREDENTIALS])] as const;
      }),
    ];
  }),
);
