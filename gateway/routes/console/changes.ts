/**
 * GET /console/api/v1/changes?topics=sessions,builds: changes of the project as server-sent events.
 * The data of each is `{"kind", "ids", "version"}`; its id is the version, from which the next
 * connection continues (Last-Event-ID, or `after` in the query). `event: heartbeat` each 15 s keeps
 * the connection open. `event: end` is sent when the login ends; after all other ends the client
 * connects again.
 */
import { Readable } from 'node:stream';
import type { RouterMiddleware } from '@koa/router';
import { must } from '../../../proto/common/must.ts';
import type { ConsoleKind, WatchChangesResponse } from '../../../proto/gen/tabern/v1/console.pb.ts';
import { asFault, invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { REQUEST_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';

/** Ours: proxies close a connection that is idle for 30 to 60 s. The login is checked as often. */
const HEARTBEAT_MS = 15_000;
/** Of one answer; the browser then connects again. */
const STREAM_MAX_MS = 3_600_000;
/** A refusal of core arrives within this; a first change may not. Ours. */
const REFUSAL_MS = 250;
/** In milliseconds, between two connections of a browser. */
const RETRY_MS = 2_000;

/** Names of kinds in the query. */
export const TOPICS: ReadonlyMap<string, ConsoleKind> = new Map(
  (
    [
      ...['SESSIONS', 'INVOCATIONS', 'BUILDS', 'DELIVERIES'],
      ...['FUNCTIONS', 'WEBHOOKS', 'CONTEXTS', 'DOWNLOADS', 'EXTENSIONS', 'KEYS'],
    ] as ConsoleKind[]
  ).map((kind) => [kind.toLowerCase(), kind]),
);

type ChangesDeps = {
  clients: Pick<Clients, 'console' | 'consoleLogins' | 'projects'>;
  gatewayToken: string;
  /** Aborts when the gateway closes. */
  draining: AbortSignal;
  /** Shorter in tests. */
  heartbeatMs?: number | undefined;
};

/** Core limits the streams of a project. */
export function watchChanges(deps: ChangesDeps): RouterMiddleware<State> {
  const { clients, draining, heartbeatMs = HEARTBEAT_MS } = deps;
  return async (ctx) => {
    const kinds = kindsIn(ctx.query['topics']);
    const after = versionIn(ctx.get('last-event-id') || ctx.query['after']);
    const call = must(ctx.state.call, 'a key')(STREAM_MAX_MS);
    const ended = new AbortController();
    const signal = AbortSignal.any([must(call.signal, 'a signal'), ended.signal, draining]);
    const options = { ...call, signal };
    const changes = clients.console.watchChanges({ kinds, after }, options)[Symbol.asyncIterator]();
    const next = changes.next();
    await within(REFUSAL_MS, next); // throws a refusal, which is an answer
    ctx.set('x-accel-buffering', 'no');
    ctx.type = 'text/event-stream';
    const check = checkOf(ctx.state, deps, signal);
    const end = () => {
      ended.abort();
      // a call whose next part nobody awaits does not notice the signal
      void changes.return?.().catch(() => undefined);
    };
    const body = Readable.from(events({ changes, next, check, end, heartbeatMs }));
    body.once('close', end); // also when nothing was read, as of HEAD
    ctx.body = body;
  };
}

/** Throws when the credential of the request has ended. It does not count as a use. */
function checkOf(
  { login: text, call, requestId }: State,
  { clients, gatewayToken }: ChangesDeps,
  signal: AbortSignal,
): () => Promise<unknown> {
  if (text === undefined) {
    return () => clients.projects.listProjects({}, call?.(REQUEST_TIMEOUT_MS));
  }
  const metadata = { authorization: `Bearer ${gatewayToken}`, 'x-request-id': requestId };
  const options = { metadata, signal, timeoutMs: REQUEST_TIMEOUT_MS };
  return () => clients.consoleLogins.getConsoleLogin({ text, use: false }, options);
}

type Watched = {
  changes: AsyncIterator<WatchChangesResponse>;
  /** The first of them. */
  next: Promise<IteratorResult<WatchChangesResponse>>;
  check: () => Promise<unknown>;
  /** Ends the call to core. */
  end: () => void;
  heartbeatMs: number;
};

async function* events(watched: Watched): AsyncGenerator<string> {
  const { changes, check, end, heartbeatMs } = watched;
  let { next } = watched;
  try {
    yield `retry: ${RETRY_MS}\n\n`;
    for (;;) {
      const result = await within(heartbeatMs, next);
      if (result === undefined) {
        await check();
        yield 'event: heartbeat\ndata: {}\n\n';
        continue;
      }
      if (result.done) return;
      const { kind, ids, version } = result.value;
      yield `id: ${version}\ndata: ${JSON.stringify({ kind, ids, version })}\n\n`;
      next = changes.next();
    }
  } catch (error) {
    if (asFault(error).row.http === 401) yield 'event: end\ndata: {}\n\n';
  } finally {
    end();
  }
}

/** Undefined when it takes longer; then its failure is for the next that awaits it. */
async function within<T>(ms: number, value: Promise<T>): Promise<T | undefined> {
  value.catch(() => undefined);
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  try {
    return await Promise.race([value, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** All kinds without topics. */
function kindsIn(topics: string | string[] | undefined): ConsoleKind[] {
  if (topics === undefined) return [];
  const names = Array.isArray(topics) ? topics : topics.split(',');
  return names.map((name) => {
    const kind = TOPICS.get(name);
    if (kind !== undefined) return kind;
    const known = [...TOPICS.keys()].join(', ');
    throw invalidField('topics', `must be names of ${known}, separated by commas.`);
  });
}

/** Undefined for an id that this service did not send: everything is read again. */
function versionIn(id: string | string[] | undefined): number | undefined {
  return typeof id === 'string' && /^\d{1,16}$/.test(id) ? Number(id) : undefined;
}
