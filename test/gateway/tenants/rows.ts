/**
 * A row per operation of the published description: the objects in its path and body, and the
 * answer for its own project. An operation without a row fails the test.
 */
import type { Kind } from './tenant.ts';

export type Row = {
  /** The kinds of the path's parameters; `text` is a literal. */
  path?: Record<string, Kind | { text: string }>;
  query?: Record<string, Kind>;
  /** A JSON body; `$kind` in it names an object. */
  body?: object;
  form?: 'file' | 'archive' | 'extension' | 'certificate';
  /**
   * For the own project's own object; `not-run`: it would wait for a runner, or for its session.
   */
  own: number | 'not-run';
  /** For an object of the own project that was deleted; only where something deletes it. */
  deleted?: number;
  /**
   * The operation needs no key: every caller gets the same response. `elsewhere`: other tests check
   * it.
   */
  open?: 'public' | 'signed' | 'elsewhere';
};

const gone = 404;
const [context, session, secret, webhook] = [
  { id: 'context' },
  { id: 'session' },
  { id: 'secret' },
  { id: 'webhook' },
] as const;
const handoff = { sessionId: 'session', id: 'handoff' } as const;
const delivery = { id: 'webhook', deliveryId: 'delivery' } as const;
/** A request that a receiver refuses. */
const REFUSED = {
  webhookId: 'id',
  webhookTimestamp: '1',
  webhookSignature: 'v1,x',
  body: '{}',
};
/** A value for a key pair that no project has. */
const MISSING_ID = '01a1fce4-ed84-7600-895f-0cf6ab39edc7';
const SEALED = {
  keypairId: MISSING_ID,
  sealedSecretValue: Buffer.alloc(48).toString('base64'),
};
const named = (pathName: string) => ({ text: pathName });

function discoveryRows(base: string): [string, Row][] {
  const row: Row = { query: { sessionId: 'session' }, own: 502 };
  const path = { id: named('none') };
  return [
    ...['', '/version', '/version/', '/list', '/protocol'].map((name): [string, Row] => {
      return [`GET ${base}/json${name}`, row];
    }),
    [`PUT ${base}/json/new`, row],
    ...['activate', 'close'].map((name): [string, Row] => {
      return [`GET ${base}/json/${name}/{id}`, { ...row, path }];
    }),
    // journey/discovery: upgrades
    ...['page', 'browser'].map((kind): [string, Row] => {
      return [`GET ${base}/devtools/${kind}/{id}`, { path, own: 'not-run', open: 'elsewhere' }];
    }),
  ];
}

/** The operator's: every key is refused, whatever it names. */
function operatorRows(): Record<string, Row> {
  const base = '/console/api/v1/operator';
  const project = { project: named('default') };
  return {
    [`GET ${base}/projects`]: { own: 403 },
    [`POST ${base}/projects`]: { body: { name: 'x' }, own: 403 },
    [`PATCH ${base}/projects/{project}`]: { path: project, body: { limits: {} }, own: 403 },
    [`POST ${base}/projects/{project}/keys`]: { path: project, body: { name: 'x' }, own: 403 },
    [`GET ${base}/keys`]: { own: 403 },
    ...Object.fromEntries(
      ['sessions', 'runners', 'queues', 'notices', 'diagnosis'].map((list) => [
        `GET ${base}/${list}`,
        { own: 403 },
      ]),
    ),
    [`DELETE ${base}/keys/{id}`]: { path: { id: named('k3v9x0ab') }, own: 403 },
  };
}

export const ROWS: Readonly<Record<string, Row>> = {
  'GET /healthz': { own: 200, open: 'public' },
  'GET /readyz': { own: 200, open: 'public' },
  'GET /openapi.json': { own: 200, open: 'public' },
  'GET /docs': { own: 200, open: 'public' },
  'GET /docs/api': { own: 200, open: 'public' },
  'GET /llms.txt': { own: 200, open: 'public' },
  'GET /llms-full.txt': { own: 200, open: 'public' },
  'GET /docs/{file}': { path: { file: named('docs.js') }, own: 200, open: 'public' },
  'GET /live/{file}': { path: { file: named('viewer.js') }, own: 200, open: 'public' },
  // journey/session, gateway/routes/sessions/live-view: upgrades, and links with a token
  ...Object.fromEntries(
    ['/', '/connect', '/view', '/live', '/live/status'].map((path): [string, Row] => [
      `GET ${path}`,
      { own: 'not-run', open: 'elsewhere' },
    ]),
  ),
  // its runner has no session server here
  ...Object.fromEntries(['', '/connect'].flatMap(discoveryRows)),

  // gateway/routes/mcp: another project's objects
  'POST /mcp': { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, own: 200 },

  'GET /v1/projects': { own: 200 },
  'GET /v1/projects/{id}': { path: { id: 'project' }, own: 200 },
  'GET /v1/projects/{id}/usage': { path: { id: 'project' }, own: 200 },

  'POST /v1/contexts': { body: {}, own: 201 },
  'GET /v1/contexts': { own: 200 },
  'GET /v1/contexts/{id}': { path: context, own: 200, deleted: gone },
  'PUT /v1/contexts/{id}': { path: context, own: 200, deleted: gone },
  'GET /v1/contexts/{id}/download': { path: context, own: 404, deleted: gone },
  'PUT /v1/contexts/{id}/content': { path: context, own: 403, deleted: 403, open: 'signed' },
  'GET /v1/contexts/{id}/content': { path: context, own: 403, deleted: 403, open: 'signed' },
  'DELETE /v1/contexts/{id}': { path: context, own: 204, deleted: gone },

  // before the sessions', which throw all of them away
  'GET /v1/downloads': { query: { sessionId: 'session' }, own: 200 },
  'GET /v1/downloads/{id}': { path: { id: 'download' }, own: 200, deleted: gone },
  'DELETE /v1/downloads/{id}': { path: { id: 'download' }, own: 204, deleted: gone },

  'POST /v1/sessions': { body: { extensionId: '$extension' }, own: 'not-run', deleted: gone },
  'POST /v1/sessions/start': { body: { browserbaseSessionID: '$session' }, own: 200 },
  'GET /v1/sessions': { own: 200 },
  'GET /v1/sessions/{id}': { path: session, own: 200 },
  'GET /v1/sessions/{id}/debug': { path: session, own: 200 },
  'GET /v1/sessions/{id}/logs': { path: session, own: 200 },
  'GET /v1/sessions/{id}/recording': { path: session, own: 200 },
  'GET /v1/sessions/{id}/recording/downloads': { path: session, own: 409 },
  'GET /v1/sessions/{id}/recording/downloads/{name}': {
    path: { ...session, name: named('0.mp4') },
    own: 403,
    open: 'signed',
  },
  'GET /v1/sessions/{id}/replays': { path: session, own: 200 },
  'GET /v1/sessions/{id}/replays/{pageId}': {
    path: { ...session, pageId: named('0') },
    own: 404,
  },
  'GET /v1/sessions/{id}/replays/{pageId}/{name}': {
    path: { ...session, pageId: named('0'), name: named('0.m4s') },
    own: 403,
    open: 'signed',
  },
  'GET /v1/sessions/{sessionId}/downloads': { path: { sessionId: 'session' }, own: 200 },
  'POST /v1/sessions/{id}/uploads': { path: session, form: 'file', own: 'not-run' },
  'POST /v1/sessions/{id}/recording/downloads': { path: session, own: 409 },
  'DELETE /v1/sessions/{sessionId}/downloads': { path: { sessionId: 'session' }, own: 204 },
  'PUT /v1/sessions/{id}/labels': { path: session, body: { labels: ['a'] }, own: 200 },
  'GET /v1/sessions/{sessionId}/handoffs': { path: { sessionId: 'session' }, own: 200 },
  // one is pending
  'POST /v1/sessions/{sessionId}/handoffs': {
    path: { sessionId: 'session' },
    body: { instructions: 'help' },
    own: 409,
  },
  'GET /v1/sessions/{sessionId}/handoffs/{id}': { path: handoff, own: 200 },
  'POST /v1/sessions/{sessionId}/handoffs/{id}/complete': { path: handoff, own: 200 },
  'POST /v1/sessions/{sessionId}/handoffs/{id}/cancel': { path: handoff, own: 200 },
  'POST /v1/sessions/{id}': { path: session, body: { status: 'REQUEST_RELEASE' }, own: 200 },
  'DELETE /v1/sessions/{id}': { path: session, own: 204 },

  'POST /v1/labels': { body: { name: 'new' }, own: 201 },
  'GET /v1/labels': { own: 200 },
  'PATCH /v1/labels/{id}': {
    path: { id: 'label' },
    body: { name: 'other' },
    own: 200,
    deleted: gone,
  },
  'DELETE /v1/labels/{id}': { path: { id: 'label' }, own: 204, deleted: gone },

  'POST /v1/certificates': { form: 'certificate', own: 200 },
  'GET /v1/certificates': { own: 200 },
  'GET /v1/certificates/{id}': { path: { id: 'certificate' }, own: 200, deleted: gone },
  'DELETE /v1/certificates/{id}': { path: { id: 'certificate' }, own: 204, deleted: gone },

  'POST /v1/extensions': { form: 'extension', own: 200 },
  'GET /v1/extensions/{id}': { path: { id: 'extension' }, own: 200, deleted: gone },
  'DELETE /v1/extensions/{id}': { path: { id: 'extension' }, own: 204, deleted: gone },

  // `own`: without a key pair of the project, and after the deletion of the secret
  'GET /v1/secrets/keypair': { own: 200 },
  'POST /v1/secrets': { body: { ...SEALED, secretKey: 'NEW' }, own: 400 },
  'GET /v1/secrets': { own: 200 },
  'GET /v1/secrets/{id}': { path: secret, own: 200, deleted: gone },
  'PATCH /v1/secrets/{id}': { path: secret, body: SEALED, own: 400, deleted: gone },
  'GET /v1/functions/{functionId}/secrets': { path: { functionId: 'function' }, own: 200 },
  'POST /v1/functions/{functionId}/secrets': {
    path: { functionId: 'function' },
    body: { secretId: '$secret' },
    own: 204,
    deleted: gone,
  },
  // a detached secret stays detached, whether or not it exists
  'DELETE /v1/functions/{functionId}/secrets/{secretId}': {
    path: { functionId: 'function', secretId: named(MISSING_ID) },
    own: 204,
  },
  'DELETE /v1/secrets/{id}': { path: secret, own: 204, deleted: gone },

  'POST /v1/functions/builds': { form: 'archive', own: 202 },
  'GET /v1/functions/builds': { own: 200 },
  'GET /v1/functions/builds/{buildId}': { path: { buildId: 'build' }, own: 200 },
  'GET /v1/functions/builds/{buildId}/logs': { path: { buildId: 'build' }, own: 200 },
  'GET /v1/functions': { own: 200 },
  'GET /v1/functions/{id}': { path: { id: 'function' }, own: 200 },
  // it has a running invocation
  'DELETE /v1/functions/{id}': { path: { id: 'function' }, own: 409 },
  'GET /v1/functions/{functionId}/versions': { path: { functionId: 'function' }, own: 200 },
  'GET /v1/functions/versions/{id}': { path: { id: 'version' }, own: 200 },
  'GET /v1/functions/versions/{versionId}/invocations': {
    path: { versionId: 'version' },
    own: 200,
  },
  'POST /v1/functions/{functionId}/invoke': {
    path: { functionId: 'function' },
    body: { versionId: '$version' },
    own: 202,
  },
  'GET /v1/functions/invocations/{id}': { path: { id: 'invocation' }, own: 200 },
  'GET /v1/functions/invocations/{id}/logs': { path: { id: 'invocation' }, own: 200 },
  'POST /v1/functions/invocations/{id}/cancel': { path: { id: 'invocation' }, own: 200 },

  'POST /v1/functions/{functionId}/schedules': {
    path: { functionId: 'function' },
    body: { cron: '0 9 * * *' },
    own: 201,
  },
  'GET /v1/functions/{functionId}/schedules': { path: { functionId: 'function' }, own: 200 },
  'GET /v1/functions/schedules/{id}': { path: { id: 'schedule' }, own: 200, deleted: gone },
  'PATCH /v1/functions/schedules/{id}': {
    path: { id: 'schedule' },
    body: { enabled: false },
    own: 200,
    deleted: gone,
  },
  'DELETE /v1/functions/schedules/{id}': { path: { id: 'schedule' }, own: 204, deleted: gone },

  ...Object.fromEntries(
    ['screenshot', 'pdf', 'content', 'links', 'markdown'].map((name): [string, Row] => {
      const body = { html: '<p>', context: { id: '$context' } };
      return [`POST /v1/${name}`, { body, own: 'not-run', deleted: gone }];
    }),
  ),

  // it names no object
  'POST /v1/fetch': { body: { url: 'ftp://a/' }, own: 400 },

  'POST /v1/search': { body: { query: 'inn' }, own: 501 },

  'POST /v1/webhooks': {
    body: {
      endpoint: 'https://93.184.216.34/new',
      eventTypes: ['functions.invocations.completed'],
    },
    own: 201,
  },
  'GET /v1/webhooks': { own: 200 },
  'GET /v1/events': { own: 200 },
  'GET /v1/webhooks/{id}': { path: webhook, own: 200, deleted: gone },
  'GET /v1/webhooks/{id}/deliveries': { path: webhook, own: 200, deleted: gone },
  'GET /v1/webhooks/{id}/deliveries/{deliveryId}': { path: delivery, own: 200, deleted: gone },
  'POST /v1/webhooks/{id}/deliveries/{deliveryId}/replay': {
    path: delivery,
    own: 409,
    deleted: gone,
  },
  'POST /v1/webhooks/{id}/enable': { path: webhook, own: 200, deleted: gone },
  'POST /v1/webhooks/{id}/recover': {
    path: webhook,
    body: { since: '2026-01-02T00:00:00Z' },
    own: 202,
    deleted: gone,
  },
  'POST /v1/webhooks/{id}/test': { path: webhook, own: 202, deleted: gone },
  'PATCH /v1/webhooks/{id}': {
    path: webhook,
    body: { eventTypes: ['functions.invocations.failed'] },
    own: 200,
    deleted: gone,
  },
  'POST /v1/webhooks/{id}/secret': { path: webhook, body: {}, own: 200, deleted: gone },
  'DELETE /v1/webhooks/{id}': { path: webhook, own: 204, deleted: gone },

  'GET /console/api/v1/overview': { own: 200 },
  'GET /console/api/v1/sessions': { own: 200 },
  'GET /console/api/v1/sessions/{id}': { path: session, own: 200 },
  'GET /console/api/v1/sessions/{id}/events': { path: session, own: 200 },
  'POST /console/api/v1/sessions/{id}/copies': { path: session, body: {}, own: 'not-run' },
  'POST /console/api/v1/sessions/{id}/shares': {
    path: session,
    body: { expiresIn: 60 },
    own: 201,
  },
  'GET /console/api/v1/shared': { own: 403, open: 'signed' },
  'GET /console/api/v1/shared/debug': { own: 403, open: 'signed' },
  'GET /console/api/v1/shared/replays': { own: 403, open: 'signed' },
  'GET /console/api/v1/invocations': { own: 200 },
  'GET /console/api/v1/invocations/{id}': { path: { id: 'invocation' }, own: 200 },
  'GET /console/api/v1/invocations/{id}/steps': { path: { id: 'invocation' }, own: 200 },
  'GET /console/api/v1/builds': { own: 200 },
  'GET /console/api/v1/webhooks/health': { own: 200 },
  'GET /console/api/v1/webhooks/{id}/deliveries/{deliveryId}': {
    path: delivery,
    own: 200,
    deleted: gone,
  },
  'POST /console/api/v1/webhooks/{id}/verify': {
    path: webhook,
    body: REFUSED,
    own: 200,
    deleted: gone,
  },
  'GET /console/api/v1/functions': { own: 200 },
  'GET /console/api/v1/functions/{id}': { path: { id: 'function' }, own: 200 },
  'GET /console/api/v1/functions/{id}/versions': { path: { id: 'function' }, own: 200 },
  'GET /console/api/v1/logs/{id}': { path: { id: 'invocation' }, own: 200 },
  'GET /console/api/v1/deliveries': { own: 200 },
  'GET /console/api/v1/contexts': { own: 200 },
  'GET /console/api/v1/downloads': { own: 200 },
  'GET /console/api/v1/extensions': { own: 200 },
  'GET /console/api/v1/usage': { own: 200 },
  'GET /console/api/v1/settings': { own: 200 },
  'GET /console/api/v1/keys': { own: 200 },
  'POST /console/api/v1/keys': { body: { name: 'x' }, own: 201 },
  'POST /console/api/v1/keys/{id}/revoke': { path: { id: 'key' }, body: {}, own: 200 },
  'GET /console/api/v1/counts': { own: 400 },
  'GET /console/api/v1/search': { own: 400 },
  'GET /console/api/v1/audit': { own: 200 },
  ...operatorRows(),
};
