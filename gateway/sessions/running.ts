/**
 * What runners know of running sessions, for lists of the console: the state of each, and a small
 * picture. Core decides for each request which of the sessions the caller may see. What a runner
 * answered is then shared for a moment, so that many viewers of one session cost its runner as much
 * as one.
 */
import { createHash } from 'node:crypto';
import { must } from '../../proto/common/must.ts';

import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { type Recent, recent } from './recent.ts';
import { bytesFromSessionServer, callSessionServer, type SessionPlace } from './runner-client.ts';
import type { RunnerTrust } from './runner-trust.ts';

/** Ours: half of the time between two requests of a list. */
const KEPT_MS = 2_500;
/** Ours: a list shows fewer; older answers make room. */
const KEPT_MAX = 1_000;
/** A place is valid while its session runs. Ours: as long as a person looks at a list. */
const PLACE_KEPT_MS = 60_000;
/** Ours: a list is complete without a runner that takes longer. */
const ANSWER_TIMEOUT_MS = 4_000;
/** Ours: some 2 MB; a person sees fewer at once. */
const PICTURES_MAX = 200;
const PICTURE_MAX_BYTES = 256 << 10;
const JPEG = Buffer.from([0xff, 0xd8, 0xff]);

/** Of the runner; undefined members are unknown there. */
export type SessionState = {
  title?: string | undefined;
  url?: string | undefined;
  clients?: number | undefined;
  memoryBytes?: number | undefined;
};
export type Picture = { jpeg: Buffer; etag: string };

type Options = {
  clients: Pick<Clients, 'console' | 'sessions'>;
  gatewayToken: string;
  runnerTrust?: RunnerTrust | undefined;
};

export type RunningSessions = {
  /** Those of the sessions that run and whose runner answers. Throws core's Faults. */
  states(ids: readonly string[], call: CallOptions): Promise<(SessionState & { id: string })[]>;
  /** Throws RESOURCE_NOT_FOUND, with what there is instead. */
  picture(id: string, call: CallOptions): Promise<Picture>;
};

export function openRunningSessions(options: Options): RunningSessions {
  const { clients, gatewayToken, runnerTrust: trust } = options;
  const metadata = { authorization: `Bearer ${gatewayToken}` };
  const places = recent<SessionPlace>({ keptMs: PLACE_KEPT_MS, max: KEPT_MAX });
  const states = recent<SessionState>({ keptMs: KEPT_MS, max: KEPT_MAX });
  const pictures = recent<Picture>({ keptMs: KEPT_MS, max: PICTURES_MAX });

  /** Of a running session that the caller may see. Without its address it is located again. */
  async function read<T>(
    { id, signingKey: value }: { id: string; signingKey: string },
    {
      from,
      ask,
    }: { from: Recent<T>; ask: (place: SessionPlace, signal: AbortSignal) => Promise<T> },
  ): Promise<T> {
    return await from(id, async () => {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS); // of nobody: the answer is shared
      const credential = { $case: 'signingKey', value } as const;
      const locate = async () => {
        return {
          ...(await clients.sessions.locateSession({ credential }, { metadata, signal })),
          trust,
        };
      };
      return await ask(await places(id, locate), signal).catch((error: unknown) => {
        places.forget(id);
        throw error;
      });
    });
  }

  return {
    async states(ids, call) {
      const { sessions } = await clients.console.listRunningSessions({ ids: [...ids] }, call);
      const found = await Promise.allSettled(
        sessions.map(async (one) => {
          return { ...(await read(one, { from: states, ask: stateOf })), id: one.id };
        }),
      );
      return found.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    },
    async picture(id, call) {
      const { sessions } = await clients.console.listRunningSessions({ ids: [id] }, call);
      const [running] = sessions;
      if (running !== undefined) return await read(running, { from: pictures, ask: pictureOf });
      const { session } = await clients.console.getSession({ id }, call);
      const isWaiting = must(session, 'a session').status === 'PENDING';
      throw noPicture(isWaiting ? 'The session has no browser yet.' : 'The session has ended.');
    },
  };
}

function noPicture(message: string): Fault {
  return new Fault('RESOURCE_NOT_FOUND', `${message} There is no picture of it.`);
}

async function stateOf(place: SessionPlace, signal: AbortSignal): Promise<SessionState> {
  const answer = await callSessionServer(place, { method: 'GET', path: '/state', signal });
  const { title, url, clients, memoryBytes } = Object(answer) as Record<string, unknown>;
  return {
    title: typeof title === 'string' ? title : undefined,
    url: typeof url === 'string' ? url : undefined,
    clients: typeof clients === 'number' ? clients : undefined,
    memoryBytes: typeof memoryBytes === 'number' ? memoryBytes : undefined,
  };
}

async function pictureOf(place: SessionPlace, signal: AbortSignal): Promise<Picture> {
  const jpeg = await bytesFromSessionServer(place, { method: 'GET', path: '/thumbnail', signal });
  if (jpeg.length > PICTURE_MAX_BYTES || !jpeg.subarray(0, JPEG.length).equals(JPEG)) {
    throw new Fault('BROWSER_FAILED', 'The picture of the session is not valid.');
  }
  const etag = createHash('sha256').update(jpeg).digest('base64url').slice(0, 22);
  return { jpeg, etag };
}
