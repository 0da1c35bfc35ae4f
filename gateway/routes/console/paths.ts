/**
 * Descriptions of the console's own routes. They are no part of the published interface, so
 * /openapi.json does not contain them; tests check answers against them.
 */
import {
  ASSET,
  answers,
  BINARY,
  FAILURE,
  ID,
  inPath,
  json,
  keyless,
  query,
  TEXT,
  texts,
} from '../openapi-parts.ts';

/** Of `/console/p/{project}/sessions/{id}` and what may follow. Ours. */
const DEPTH_MAX = 6;
const HTML = answers('HTML.', { 'text/html': TEXT });
const IMAGES = { 'image/svg+xml': BINARY, 'image/png': BINARY, 'application/wasm': BINARY };

const LOGIN = {
  type: 'object',
  required: ['kind', 'keyId', 'expiresAt'],
  properties: {
    kind: { enum: ['key', 'code', 'operator'] },
    keyId: { type: ['string', 'null'] },
    expiresAt: { type: 'string', format: 'date-time' },
  },
};
const LOGGED_IN = {
  type: 'object',
  required: ['projectId', 'projectName', 'login'],
  properties: {
    projectId: { type: ['string', 'null'] },
    projectName: { type: ['string', 'null'] },
    login: LOGIN,
  },
};
const LOG_PART = {
  type: 'object',
  required: ['logs', 'end', 'isEnd'],
  properties: {
    logs: { type: 'array', items: { type: 'object' } },
    end: { type: 'integer' },
    isEnd: { type: 'boolean' },
  },
};
const SERVICE = {
  type: 'object',
  required: ['version', 'baseUrl', 'topics'],
  properties: {
    ...texts('version', 'baseUrl').properties,
    topics: { type: 'array', items: { type: 'string' } },
  },
};
const ME = {
  type: 'object',
  required: [...LOGGED_IN.required, 'service'],
  properties: {
    ...LOGGED_IN.properties,
    login: { anyOf: [LOGIN, { type: 'null' }] },
    service: SERVICE,
  },
};

const RUNNING = {
  type: 'object',
  required: ['id'],
  properties: {
    ...texts('id', 'title', 'url').properties,
    clients: { type: 'integer' },
    memoryBytes: { type: 'integer' },
  },
  additionalProperties: false,
};

const pages = Array.from({ length: DEPTH_MAX + 1 }, (_, depth) => {
  const names = Array.from({ length: depth }, (_, at) => `part${at}`);
  const path = ['/console', ...names.map((name) => `{${name}}`)].join('/');
  const parameters = names.map(inPath);
  return [path, keyless(`console${depth}`, 'The page.', { parameters, responses: HTML })] as const;
});

function post(operationId: string, summary: string, responses: object) {
  return { post: { operationId, summary, security: [], responses } };
}

export const CONSOLE_PATHS: Readonly<Record<string, object>> = {
  ...Object.fromEntries(pages),
  '/': keyless('consoleHome', 'Leads to the console, or is a connection to a session.', {
    responses: {
      101: { description: 'Switched to WebSocket.' },
      302: { description: 'The console.', content: { 'text/html': TEXT, 'text/plain': TEXT } },
      default: FAILURE,
    },
  }),
  '/console/assets/{file}': keyless('consoleAsset', 'An asset of the page.', {
    parameters: [inPath('file')],
    responses: {
      304: { description: 'Not modified.' },
      ...answers('A built file.', { ...ASSET, ...IMAGES }),
    },
  }),
  '/console/login': {
    ...keyless('consoleLoginPage', 'The page.', { responses: HTML }),
    ...post('logIn', 'Logs in.', answers('Logged in.', json(LOGGED_IN))),
  },
  '/console/logout': {
    ...keyless('consoleLogoutPage', 'The page.', { responses: HTML }),
    ...post('logOut', 'Logs out.', { 204: { description: 'Done.' }, default: FAILURE }),
  },
  '/console/api/v1/me': {
    get: {
      operationId: 'getMe',
      summary: 'The project and the login of the request.',
      responses: answers('The caller.', json(ME)),
    },
  },
  '/console/api/v1/shared/logs': {
    get: {
      operationId: 'listSharedLogs',
      summary: 'A part of the protocol log of a shared session.',
      parameters: [query('from', '`end` of the part before.')],
      responses: answers('The part.', json(LOG_PART)),
    },
  },
  '/console/api/v1/sessions/{id}/logs': {
    get: {
      operationId: 'listLogs',
      summary: 'A part of the protocol log of a session.',
      parameters: [ID, query('from', '`end` of the part before.')],
      responses: answers('The part.', json(LOG_PART)),
    },
  },
  '/console/api/v1/shared/replays/{pageId}': {
    get: {
      operationId: 'getSharedReplay',
      summary: 'An HLS playlist of one page of a shared session.',
      parameters: [inPath('pageId')],
      responses: answers('The playlist.', { 'application/vnd.apple.mpegurl': TEXT }),
    },
  },
  '/console/api/v1/downloads/{id}/content': {
    get: {
      operationId: 'getDownloadContent',
      summary: 'The bytes of a download.',
      parameters: [ID],
      responses: answers('The bytes.', { 'application/octet-stream': BINARY }),
    },
  },
  '/console/api/v1/sessions/live': {
    get: {
      operationId: 'listRunningSessions',
      summary: 'What runners know of running sessions.',
      parameters: [query('ids', 'UUIDs, separated by commas.')],
      responses: answers(
        'Those that run.',
        json({
          type: 'object',
          required: ['sessions'],
          properties: { sessions: { type: 'array', items: RUNNING } },
        }),
      ),
    },
  },
  '/console/api/v1/sessions/{id}/thumbnail': {
    get: {
      operationId: 'getThumbnail',
      summary: 'A small picture of a running session.',
      parameters: [inPath('id')],
      responses: {
        304: { description: 'Not modified.' },
        ...answers('A JPEG.', { 'image/jpeg': BINARY }),
      },
    },
  },
  '/console/api/v1/operator/backup': {
    get: {
      operationId: 'downloadBackup',
      summary: 'A backup of the installation.',
      responses: answers('A tar.', { 'application/x-tar': BINARY }),
    },
  },
  '/console/api/v1/changes': {
    get: {
      operationId: 'watchChanges',
      summary: 'Changes as server-sent events.',
      parameters: [query('topics', 'Names of kinds.'), query('after', 'A version.')],
      responses: answers('Events.', { 'text/event-stream': TEXT }),
    },
  },
};
