/**
 * Interceptors of an RPC: authentication, authorization, the audit of changes that a login of the
 * console requests, the handler, one log line. Services are
 * written as handlers `(request, caller)` and converted here to services of proto/rpc/local.ts, for
 * local calls and gRPC.
 */

import type { Log } from '../../proto/common/log.ts';
import { type Scope, traced } from '../../proto/common/tracing.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { AnyHandler, Call, Definition, Handlers } from '../../proto/rpc/local.ts';
import type { Audit, AuditEntry } from './audit.ts';
import {
  type Authenticate,
  type Caller,
  keyMissing,
  type Login,
  type Share,
} from './authentication.ts';
import type { EnterCall } from './call-shares.ts';

/**
 * A project, by its API key or a login of the console; `keyId` is the public part of the key. With
 * `until`, in Unix milliseconds, the links of the answer end no later.
 */
export type ProjectCaller = {
  projectId: string;
  keyId?: string | undefined;
  until?: number;
  call: Call;
};
/** The holder of a link to one session. */
export type ShareCaller = { share: Share; call: Call };
/** One of the other roles, by its token; `login` for the operator by a login of the console. */
export type MachineCaller = { call: Call; login?: Login | undefined };
/** A project, or the operator: then `projectId` is undefined. */
export type ReaderCaller = { call: Call; projectId?: string | undefined };

/** Handlers of a service. */
export type Service<D extends Definition, C> = {
  [K in keyof D]: (request: Parameters<Handlers<D>[K]>[0], caller: C) => ReturnType<Handlers<D>[K]>;
};

/** Converts a caller to the type that the service needs, or refuses it. */
export type Admit<C> = (caller: Caller, call: Call) => C;

export const onlyProjects: Admit<ProjectCaller> = (caller, call) => {
  if (caller.kind === 'operator' && caller.login !== undefined) {
    const message = 'An operator login reads a project below /console/api/v1/as/{project}.';
    throw new Fault('PROJECT_MISMATCH', message);
  }
  if (caller.kind !== 'project') throw keyMissing();
  const { projectId, keyId } = caller;
  return { projectId, keyId, call };
};

export const onlyShares: Admit<ShareCaller> = (caller, call) => {
  if (caller.kind === 'share') return { share: caller, call };
  throw new Fault('URL_SIGNATURE_INVALID', 'This needs the link of a shared session.');
};

export const onlyRunners = only('runner', 'is for runners and needs their token.');
export const onlyGateways = only('gateway', 'is for gateways and needs their token.');
/** By their token, or by an operator login of the console. */
export const onlyOperators = only('operator', "is the operator's and needs their token or login.");
/** For what no login may do: make another login. */
export const onlyOperatorTokens: Admit<MachineCaller> = (caller, call) => {
  const admitted = onlyOperators(caller, call);
  if (admitted.login === undefined) return admitted;
  throw new Fault('TOKEN_REQUIRED', 'This operation needs the operator token itself.');
};

export const projectsAndOperators: Admit<ReaderCaller> = (caller, call) => {
  return caller.kind === 'operator' ? { call } : onlyProjects(caller, call);
};

function only(kind: Caller['kind'], refusal: string): Admit<MachineCaller> {
  return (caller, call) => {
    if (caller.kind !== kind) throw new Fault('TOKEN_REQUIRED', `This operation ${refusal}`);
    return { call, login: caller.kind === 'operator' ? caller.login : undefined };
  };
}

/**
 * Converts handlers to a service of proto/rpc/local.ts: the caller is authenticated and authorized
 * before the handler runs, and holds a slot until it ends. `entered` may refuse an authenticated
 * caller.
 */
export function guarded<D extends Definition, C>(
  definition: D,
  service: Service<D, C>,
  rules: {
    authenticate: Authenticate;
    enterCall: EnterCall;
    admit: Admit<C>;
    entered: (name: string) => void;
    audit: Audit;
  },
): Handlers<D> {
  const enter = (who: Caller, call: Call, name: string): C => {
    const caller = rules.admit(who, call);
    rules.entered(name);
    return caller;
  };
  return mapped(definition, (name, isStream) => {
    const handler = service[name] as (request: unknown, caller: C) => ReturnType<AnyHandler>;
    if (!isStream) {
      return async (request, call) => {
        const who = await rules.authenticate(call.metadata);
        using _ = rules.enterCall(who);
        const entry = await rules.audit({ who, name, request, call });
        const run = async () => handler(request, enter(who, call, name));
        return entry === undefined ? await run() : await recorded(entry, run);
      };
    }
    return async function* (request, call) {
      const who = await rules.authenticate(call.metadata);
      using _ = rules.enterCall(who);
      const entry = await rules.audit({ who, name, request, call });
      const run = () => handler(request, enter(who, call, name)) as AsyncIterable<unknown>;
      yield* entry === undefined ? run() : recordedParts(entry, run);
    };
  });
}

async function recorded(entry: AuditEntry, run: () => Promise<unknown>): Promise<unknown> {
  try {
    const answer = await run();
    await entry.end({ answer });
    return answer;
  } catch (error) {
    await entry.end({ error });
    throw error;
  }
}

/** A stream that its reader leaves was cancelled. */
async function* recordedParts(
  entry: AuditEntry,
  run: () => AsyncIterable<unknown>,
): AsyncGenerator<unknown> {
  let ended: { error?: unknown } = { error: new Fault('CANCELLED', 'The caller left.') };
  try {
    yield* run();
    ended = {};
  } catch (error) {
    ended = { error };
    throw error;
  } finally {
    await entry.end(ended);
  }
}

/**
 * One debug line per call that was answered or failed. Internal errors are also logged in full,
 * once.
 */
export function logged<D extends Definition>(
  definition: D,
  handlers: Handlers<D>,
  log: Log,
): Handlers<D> {
  return mapped(definition, (name, isStream) => {
    const handler = handlers[name] as AnyHandler;
    if (isStream) return handler;
    return async (request, call) => {
      const startedAt = performance.now();
      const note = (reason: string) => {
        const ms = Math.round(performance.now() - startedAt);
        log.debug({ rpc: name, requestId: call.metadata['x-request-id'], ms, reason }, 'call');
      };
      try {
        const { traceparent } = call.metadata;
        const run = async (scope: Scope) => handler(request, below(call, scope));
        const answer = await traced({ name: `core ${name}`, traceparent }, run);
        note('OK');
        return answer;
      } catch (error) {
        note(error instanceof Fault ? error.reason : 'INTERNAL');
        throw error;
      }
    };
  });
}

/** Store operations of a call are children of its span. */
function below(call: Call, { traceparent }: Scope): Call {
  if (traceparent === undefined || traceparent === call.metadata['traceparent']) return call;
  return { ...call, metadata: { ...call.metadata, traceparent } };
}

function mapped<D extends Definition>(
  definition: D,
  wrap: (name: string, isStream: boolean) => AnyHandler,
): Handlers<D> {
  const entries = Object.entries(definition).map(([name, { responseStream }]) => [
    name,
    wrap(name, responseStream),
  ]);
  return Object.fromEntries(entries) as unknown as Handlers<D>;
}
