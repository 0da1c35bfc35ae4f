/**
 * The HTTP application: assigns a request id, catches failures, checks and authenticates the
 * request, and routes it. Every request receives an answer with its request id.
 */
import Router from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import {
  CONTEXT_MAX_BYTES,
  EXTENSION_MAX_BYTES,
  SESSION_FILE_MAX_BYTES,
} from '../proto/common/limits.ts';
import type { Log } from '../proto/common/log.ts';
import { type Metrics, NO_METRICS } from '../proto/common/metrics.ts';
import { traced } from '../proto/common/tracing.ts';
import { Fault } from '../proto/rpc/errors.ts';
import type { Clients } from '../proto/rpc/services.ts';
import { BODY_MAX_BYTES, LINGER_MS, UPLOAD_MAX_BYTES, URL_MAX_CHARS } from './config.ts';
import { auth, requestIdOf, type State, traceparentOf } from './http/auth.ts';
import { checkDeclaredSize } from './http/body.ts';
import { errors, SECURITY_HEADERS } from './http/errors.ts';
import { namedProject } from './http/named-project.ts';
import { counted } from './process/metrics.ts';
import {
  isPublished,
  operationsOf,
  readContract,
  readDocumentedContract,
} from './rest/operations.ts';
import { routeOf, transcoder } from './rest/transcode.ts';
import { downloadBackup } from './routes/console/backup.ts';
import { watchChanges } from './routes/console/changes.ts';
import { addLogins } from './routes/console/login.ts';
import { addLogs } from './routes/console/logs.ts';
import { addConsolePages, type ConsoleFiles, consoleHeaders } from './routes/console/pages.ts';
import { addRunningSessions } from './routes/console/running.ts';
import { addShares } from './routes/console/shares.ts';
import { addDocs } from './routes/docs.ts';
import { BUILDS_PATH, createBuild } from './routes/files/builds.ts';
import { CERTIFICATES_PATH, createCertificate } from './routes/files/certificates.ts';
import { contextContent, isContentUpload } from './routes/files/contexts.ts';
import {
  DOWNLOAD_CONTENT_ROUTE,
  DOWNLOAD_ROUTE,
  DOWNLOADS_ROUTE,
  getDownload,
  getDownloadContent,
  getSessionDownloads,
} from './routes/files/downloads.ts';
import { createExtension, EXTENSIONS_PATH } from './routes/files/extensions.ts';
import { FRAMING_MAX_BYTES } from './routes/files/multipart.ts';
import { uploadSlots } from './routes/files/upload-limits.ts';
import { isSessionUpload, UPLOADS_ROUTE, uploadFile } from './routes/files/uploads.ts';
import { type CoreProblem, health, ready } from './routes/health.ts';
import { INVOKE_ROUTE, preferWait } from './routes/invoke.ts';
import { addMcp } from './routes/mcp/route.ts';
import { addOneShots } from './routes/one-shots.ts';
import { describe } from './routes/openapi.ts';
import { addDiscovery } from './routes/sessions/discovery.ts';
import { addLiveView, withTabs } from './routes/sessions/live-view.ts';
import { listSessionLogs, SESSION_LOGS_ROUTE } from './routes/sessions/logs.ts';
import { getReplay, REPLAY_ROUTE, recordingBytes } from './routes/sessions/recordings.ts';
import { START_PATH, startSession } from './routes/sessions/stagehand-start.ts';
import { refuseUnserved } from './routes/unserved.ts';
import type { RunnerTrust } from './sessions/runner-trust.ts';
import { vetted } from './webhooks/endpoint-check.ts';
import type { Guard } from './webhooks/ssrf-guard.ts';

type GatewayDeps = {
  /** Undefined when the setting removes the console. */
  console?: ConsoleDeps | undefined;
  clients: Clients;
  gatewayToken: string;
  coreProblem?: CoreProblem | undefined;
  runnerTrust?: RunnerTrust | undefined;
  guard: Guard;
  /** Without a trailing slash. When undefined, links use the origin of the request. */
  publicUrl: string | undefined;
  log: Log;
  metrics?: Metrics | undefined;
  /** Aborts when requests are refused. */
  draining: AbortSignal;
  /** Aborts when connections and waiting requests shall end; requests are served. */
  leaving: AbortSignal;
  /** Aborts when it shall receive no new work; it serves as before. */
  unready: AbortSignal;
};

/** `files`: undefined when the page is not built; its API is served all the same. */
type ConsoleDeps = { files: ConsoleFiles; heartbeatMs?: number | undefined };

/** The application; `callback()` returns the request listener for node's http server. */
export function openApp(deps: GatewayDeps): Koa<State> {
  const { clients, guard, log, draining, leaving, metrics = NO_METRICS } = deps;
  const app = new Koa<State>();
  app.use(opened(log, leaving));
  if (metrics !== NO_METRICS) app.use(counted(metrics));
  app.use(errors(log));
  if (deps.console !== undefined) app.use(consoleHeaders).use(namedProject);
  app.use(checked(draining));
  app.use(contextContent(deps));
  app.use(recordingBytes(deps));
  app.use(auth({ ...deps, hasConsole: deps.console !== undefined }));
  const vettedClients = withTabs({ ...deps, clients: vetted(clients, guard) });
  app.use(routes({ ...deps, clients: vettedClients, draining: leaving }));
  app.use(unrouted);
  // Failures while an answer is written: the client has disconnected.
  app.on('error', (error) => log.debug({ err: error }, 'sending the answer failed'));
  return app;
}

/** What /openapi.json answers. */
function describePublished(): object {
  const contract = readDocumentedContract();
  return describe(contract, operationsOf(contract).filter(isPublished));
}

/** Hand-written routes come first: parameters of generated ones would match some of their paths. */
function routes(deps: Omit<GatewayDeps, 'guard'>): Middleware {
  const { clients, publicUrl, draining } = deps;
  const registry = readContract();
  const operations = operationsOf(registry);
  let description: string | undefined; // written when it is first asked for
  const published = () => (description ??= JSON.stringify(describePublished()));
  // Strict: `/v1/contexts/` is a context with an empty id, not the list of contexts.
  const router = new Router<State>({ sensitive: true, strict: true });
  router.get('/healthz', health(clients));
  router.get('/readyz', ready(deps));
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'json';
    ctx.body = published();
  });
  addDocs(router);
  const enter = uploadSlots();
  addLiveView(router, deps);
  addDiscovery(router, deps);
  router.post(BUILDS_PATH, createBuild(clients, registry, enter));
  router.get(SESSION_LOGS_ROUTE, listSessionLogs(clients, registry));
  router.get(REPLAY_ROUTE, getReplay({ clients, publicUrl }));
  router.post(START_PATH, startSession(clients, registry));
  router.get(DOWNLOADS_ROUTE, getSessionDownloads(clients, registry));
  router.get(DOWNLOAD_ROUTE, getDownload(clients, registry));
  router.post(EXTENSIONS_PATH, createExtension(clients, registry, enter));
  router.post(CERTIFICATES_PATH, createCertificate(clients, registry, enter));
  router.post(UPLOADS_ROUTE, uploadFile(deps, enter));
  addOneShots(router);
  router.post(INVOKE_ROUTE, preferWait({ clients, operations, draining }));
  addMcp(router, { ...deps, operations });
  addConsole(router, deps);
  for (const operation of operations) {
    if (deps.console === undefined && !isPublished(operation)) continue;
    router[operation.verb](
      routeOf(operation.template),
      transcoder(operation, { clients, publicUrl, draining }),
    );
  }
  return router.routes() as unknown as Middleware;
}

function addConsole(router: Router<State>, deps: Omit<GatewayDeps, 'guard' | 'log'>): void {
  if (deps.console === undefined) return;
  const { files, heartbeatMs } = deps.console;
  addLogins(router, deps);
  addShares(router, deps);
  addLogs(router, deps.clients);
  router.get(DOWNLOAD_CONTENT_ROUTE, getDownloadContent(deps.clients));
  router.get('/console/api/v1/changes', watchChanges({ ...deps, heartbeatMs }));
  addRunningSessions(router, deps);
  router.get('/console/api/v1/operator/backup', downloadBackup(deps.clients));
  if (files !== undefined) addConsolePages(router, files);
}

/** Sets the request id and standard headers, logs the request, and lingers after the answer. */
function opened(log: Log, leaving: AbortSignal): Middleware<State> {
  return async (ctx, next) => {
    const startedAt = performance.now();
    ctx.state.requestId = requestIdOf(ctx.req);
    ctx.set({ ...SECURITY_HEADERS, 'x-request-id': ctx.state.requestId });
    ctx.res.once('finish', () => linger(ctx.req));
    await spanned(ctx, next);
    // Otherwise the client would send its next request on a connection that is about to close.
    if (leaving.aborted) ctx.set('connection', 'close');
    const { method, path, status } = ctx;
    const ms = Math.round(performance.now() - startedAt);
    log.debug({ requestId: ctx.state.requestId, method, path, status, ms }, 'request');
  };
}

/** In a span, when tracing is on; named after the route. */
function spanned(ctx: Context, next: () => Promise<unknown>): Promise<void> {
  const { method, req, state } = ctx;
  return traced({ name: method, traceparent: traceparentOf(req) }, async (scope) => {
    state['traceparent'] = scope.traceparent;
    await next();
    const route = String(ctx['_matchedRoute'] ?? 'none');
    scope.note(`${method} ${route}`, { 'http.route': route, 'http.status_code': ctx.status });
  });
}

function linger(request: Koa.Request['req']): void {
  if (request.complete) return;
  const cut = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once('close', () => clearTimeout(cut));
}

/** Checks that need no API key: shape and size of the request, and the state of the service. */
function checked(draining: AbortSignal): Middleware<State> {
  return (ctx, next) => {
    const { req } = ctx;
    if (draining.aborted) throw new Fault('DRAINING', 'The service is shutting down.');
    const hosts = req.headersDistinct.host ?? [];
    const isHosted = hosts.length === 1 || (hosts.length === 0 && req.httpVersion === '1.0');
    if (!ctx.url.startsWith('/') || !isHosted) {
      throw new Fault('MALFORMED_REQUEST', 'The request is not valid HTTP.');
    }
    if (ctx.url.length > URL_MAX_CHARS) {
      throw new Fault('URI_TOO_LONG', 'The URL is too long.', { limitChars: URL_MAX_CHARS });
    }
    checkDeclaredSize(req, bodyMaxBytes(ctx));
    return next();
  };
}

function bodyMaxBytes({ method, path }: { method: string; path: string }): number {
  if (isContentUpload(method, path)) return CONTEXT_MAX_BYTES;
  if (isSessionUpload(method, path)) return SESSION_FILE_MAX_BYTES + FRAMING_MAX_BYTES;
  if (method !== 'POST') return BODY_MAX_BYTES;
  if (path === BUILDS_PATH) return UPLOAD_MAX_BYTES;
  return path === EXTENSIONS_PATH ? EXTENSION_MAX_BYTES + FRAMING_MAX_BYTES : BODY_MAX_BYTES;
}

/** 405 with Allow when the path exists for another method, else 404. */
const unrouted: Middleware<State> = (ctx) => {
  const layers: { methods: string[] }[] = ctx['matched'] ?? [];
  const allow = [...new Set(layers.flatMap((layer) => layer.methods))].sort().join(', ');
  if (allow === '') {
    refuseUnserved(ctx.method, ctx.URL);
    throw new Fault('ROUTE_NOT_FOUND', `Route ${ctx.method} ${ctx.path} not found.`);
  }
  throw new Fault('METHOD_NOT_ALLOWED', `${ctx.method} is not allowed here.`, { allow });
};
