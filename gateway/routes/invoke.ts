/**
 * `Prefer: wait=N` on an invocation (RFC 7240 4.3): the generated route, registered later, accepts
 * the invocation; then its outcome is awaited. The answer is 200 when it ended in time, else the
 * usual 202, also when the wait fails.
 */
import type { JsonValue } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { INVOCATION_WAIT_MAX_S } from '../../proto/common/limits.ts';
import { must } from '../../proto/common/must.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { State } from '../http/auth.ts';
import { waiting } from '../http/long-poll.ts';
import { written } from '../rest/json-texts.ts';
import { callerOf, type Operation, render } from '../rest/operations.ts';

export const INVOKE_ROUTE = '/v1/functions/:functionId/invoke';
/** Not by its name: the console's service has a call of the same name. */
const READ = '/v1/functions/invocations/{id}';

type PreferWaitDeps = {
  clients: Clients;
  operations: readonly Operation[];
  /** Aborts when the gateway closes. */
  draining: AbortSignal;
};

export function preferWait({
  clients,
  operations,
  draining,
}: PreferWaitDeps): RouterMiddleware<State> {
  const reads = must(
    operations.find(({ verb, template }) => verb === 'get' && template === READ),
    READ,
  );
  const { method, texts } = reads;
  const call = callerOf(clients, method);
  const send = async (request: { id: string; wait: number }, options: CallOptions) =>
    render(method.output, await call(request, options), 'invocation');

  return async (ctx, next) => {
    await next();
    const wait = preferredWait(ctx.get('prefer'));
    if (wait === 0) return;
    const { id } = ctx.state.answer as { id: string };
    const options = must(ctx.state.call, 'a key');
    try {
      const latest = await waiting({ id, wait }, { send, options, draining });
      ctx.body = written(latest, texts.answer);
      if (!hasEnded(latest)) return;
    } catch (error) {
      if (error instanceof Fault) return;
      throw error;
    }
    ctx.status = 200;
    ctx.set('preference-applied', `wait=${wait}`);
  };
}

/** In seconds, INVOCATION_WAIT_MAX_S at most; 0 when absent or invalid (RFC 7240 2). */
function preferredWait(header: string): number {
  const preferences = header.split(',').map((one) => one.split(';')[0] ?? '');
  const first = preferences.find((one) => /^\s*wait\s*=/i.test(one)) ?? '';
  const [, digits = '0'] = /=\s*"?(\d{1,9})"?\s*$/.exec(first) ?? [];
  return Math.min(Number(digits), INVOCATION_WAIT_MAX_S);
}

function hasEnded(invocation: JsonValue): boolean {
  return typeof invocation === 'object' && invocation !== null && 'endedAt' in invocation;
}

const PREFER = {
  name: 'Prefer',
  in: 'header',
  required: false,
  description:
    'wait=N: the outcome if the invocation ends within N seconds, ' +
    `0 to ${INVOCATION_WAIT_MAX_S}.`,
  schema: { type: 'string' },
};

/** Additions to the description of the operation. */
export function waitingPart({ method }: Operation, success: object) {
  if (method.localName !== 'invokeFunction') return { parameters: [], responses: {} };
  const description = 'The invocation ended in time (Prefer: wait=N).';
  return { parameters: [PREFER], responses: { 200: { ...success, description } } };
}
