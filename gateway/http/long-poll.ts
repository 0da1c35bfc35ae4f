/**
 * Long polls of HTTP requests: the field `wait` extends the deadline of the call to core by that
 * many seconds. When the gateway closes, it sends each waiting request to core again without
 * `wait`, and answers with the current state.
 */
import { INVOCATION_WAIT_MAX_S } from '../../proto/common/limits.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { REQUEST_TIMEOUT_MS } from '../config.ts';

type Wanted = Readonly<Record<string, unknown>>;

/** The answer to `send(request)`. Only RPCs without side effects may have a field `wait`. */
export async function waiting<R extends Wanted, A>(
  request: R,
  wanted: {
    send(request: R, options: CallOptions): Promise<A>;
    options(timeoutMs?: number): CallOptions;
    /** Aborts when the gateway closes. */
    draining: AbortSignal;
  },
): Promise<A> {
  const { send, options, draining } = wanted;
  const { wait } = request;
  if (typeof wait !== 'number' || wait === 0) return send(request, options());
  const limited = options(REQUEST_TIMEOUT_MS + Math.min(wait, INVOCATION_WAIT_MAX_S) * 1_000);
  const left = limited.signal;
  const signal = left ? AbortSignal.any([left, draining]) : draining;
  try {
    return await send(request, { ...limited, signal });
  } catch (error) {
    const isCut = error instanceof Fault && error.reason === 'CANCELLED';
    if (!isCut || !draining.aborted || left?.aborted) throw error;
    return send({ ...request, wait: 0 }, options());
  }
}
