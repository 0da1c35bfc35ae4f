/**
 * POST /mcp: the Model Context Protocol over streamable HTTP. Each request is served alone, so any
 * gateway can answer the next one. A request needs a project's key, as below /v1, and no page of
 * another origin may send it.
 */
import { isIP } from 'node:net';
import type Router from '@koa/router';
import type { Log } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { REQUEST_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';
import { baseUrlOf } from '../../http/base-url.ts';
import { readJson } from '../../http/body.ts';
import type { Operation } from '../../rest/operations.ts';
import type { Sending, TranscodeDeps } from '../../rest/transcode.ts';
import { readMessage } from './message.ts';
import { MCP_PATH } from './paths.ts';
import { openServices } from './service.ts';

type MakeOptions = Sending['options'];
type McpDeps = TranscodeDeps & { operations: readonly Operation[]; log: Log };

/** Headers that the SDK reads. */
const PASSED = ['content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];
const PROBLEM =
  'Pages of another origin may not send requests to /mcp. TABERN_PUBLIC_URL is its own one.';
const BOTH = 'application/json, text/event-stream';

export function addMcp(router: Router<State>, { log, ...deps }: McpDeps): void {
  const serviceOf = openServices(deps);
  router.post(MCP_PATH, async (ctx) => {
    checkOrigin(ctx.get('origin'), [deps.publicUrl, numericOf(baseUrlOf(ctx))]);
    const options = must(ctx.state.call, 'a key');
    // Some messages need no call to core; none is answered without a valid key.
    await deps.clients.projects.listProjects({}, options());
    const message = readMessage(await readJson(ctx.req, ctx.state));
    const headers = new Headers({ accept: ctx.accepts('json') ? BOTH : ctx.get('accept') });
    for (const name of PASSED) if (ctx.get(name) !== '') headers.set(name, ctx.get(name));
    const { signal } = options();
    const request = new Request(baseUrlOf(ctx) + MCP_PATH, {
      method: 'POST',
      headers,
      body: '{}', // the parsed message is read instead
      ...(signal && { signal }),
    });
    const service = serviceOf({ options: ownTime(options), baseUrl: baseUrlOf(ctx) });
    // 35 MB and 0.3 s, once: a service without agents does not load it
    const { answerMessage } = await import('./server.ts');
    const answer = await answerMessage(request, message, { service, log });
    const body = await answer.text();
    ctx.body = body === '' ? null : body; // null: Koa would write the name of the status
    ctx.status = answer.status;
    if (body !== '') ctx.set('content-type', typeOf(answer));
  });
}

/** Each call of a tool has the time of a request: another one may have waited before it. */
function ownTime(options: MakeOptions): MakeOptions {
  return (timeoutMs = REQUEST_TIMEOUT_MS) => options(timeoutMs);
}

/** subscriptions/listen answers with events, which end at once: no tool changes. */
function typeOf({ headers }: Response): string {
  const type = headers.get('content-type') ?? 'application/json';
  return `${type}; charset=utf-8`;
}

/** The URL when DNS has no part in it: a page can have its own name point at this service. */
function numericOf(url: string): string | undefined {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || isIP(hostname.replace(/^\[|\]$/g, '')) ? url : undefined;
}

/** Against DNS rebinding, beside the key: only a browser sends an origin. */
function checkOrigin(origin: string, own: readonly (string | undefined)[]): void {
  const given = origin.toLowerCase();
  if (given === '' || own.some((one) => one !== undefined && new URL(one).origin === given)) return;
  throw new Fault('CROSS_ORIGIN', PROBLEM);
}
