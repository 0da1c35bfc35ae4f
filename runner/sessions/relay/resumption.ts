/**
 * The resumable connections of one relay: their tokens, and the memory of the messages that they
 * keep (proto/spec/resume.md).
 *
 * All of a session share KEPT_MAX_BYTES. Above that the held connection that keeps most is closed,
 * until there is room. Without a held one, reading from Chrome pauses until the clients have
 * acknowledged enough, for STALL_MS at most, as for a client that does not read (outbox.ts); then
 * those above an equal share are closed.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Log } from '../../../proto/common/log.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import { type Connection, type ConnectionOptions, openConnection } from './connection.ts';
import {
  event,
  MALFORMED,
  NO_SUCH_MESSAGE,
  openResumableConnection,
  type ResumableConnection,
} from './resumable-connection.ts';

const KEPT_MAX_BYTES = 16 << 20;
/** Reading from Chrome resumes below it. */
const CAUGHT_UP_BYTES = 4 << 20;
const STALL_MS = 30_000;
const TOKEN_BYTES = 24;
/** Ours: ended ones whose reason is still known. */
const ENDED_MAX = 64;
/** RFC 6455 7.4.2 leaves 4000 to 4999 to applications. */
const UNKNOWN = 4404;
const ENDED = 4410;
const POLICY_VIOLATION = 1008;
const NO_TOKEN = 'no such resume token';
const TOO_MUCH = `more than ${KEPT_MAX_BYTES >> 20} MiB of messages were kept`;
const SILENT = 'the client acknowledges no messages';
const REVOKED = 'the API key was revoked';
const ROOM = 'another client needed the place';
/** RFC 6455 7.4.1 and IANA: the service restarts, and the client may connect again. */
const RESTART = { code: 1012, reason: 'the gateway is ending: resume' };

/** What a token is bound to, beside its session. */
export type Owner = { keyId: string; targetId: string | undefined };
/** For the client: a WebSocket close code with its reason. */
export type Refusal = { code: number; reason: string };

type Wire = Pick<ConnectionOptions, 'socket' | 'wire'>;
type Entry = Owner & { digest: Buffer; connection: ResumableConnection };

export type Resumption = {
  newToken(): string;
  open(wire: Wire, token: string, owner: Owner): Connection;
  /** Undefined: the connection goes on over this WebSocket, which is the caller's otherwise. */
  resume(
    wire: Wire,
    wanted: { token: string; received: number },
    owner: Owner,
  ): Refusal | undefined;
  /** Ends those of these API keys; their WebSockets are closed by the caller. */
  revoke(keyIds: readonly string[]): void;
  /** Ends the connection that is held for the longest time; false when none is held. */
  makeRoom(): boolean;
};

export function openResumption(options: {
  pipe: Pick<Pipe, 'pause' | 'resume'>;
  log: Log;
  resumeMs: number;
  /** Shorter in tests. */
  stallMs?: number;
  onChange(isConnected: boolean): void;
}): Resumption {
  const { pipe, log, resumeMs, stallMs = STALL_MS, onChange } = options;
  const entries = new Set<Entry>();
  const ended: { digest: Buffer; reason: string }[] = [];
  const all = (): ResumableConnection[] => [...entries].map(({ connection }) => connection);
  const budget = openBudget({ pipe, stallMs, all });
  const connect = (wire: Wire): Connection => {
    return openConnection({ ...wire, pipe, log, goingAway: RESTART });
  };
  const remember = ({ digest, connection }: Entry): void => {
    ended.push({ digest, reason: connection.endReason ?? '' });
    if (ended.length > ENDED_MAX) ended.shift();
  };
  return {
    newToken: () => randomBytes(TOKEN_BYTES).toString('base64url'),
    open(wire, token, owner) {
      const connection = openResumableConnection({
        first: connect(wire),
        greeting: event('Tabern.resumable', { token, resumeMs, keptMaxBytes: KEPT_MAX_BYTES }),
        resumeMs,
        onBytes: budget.onBytes,
        onChange(isConnected) {
          entries.delete(entry);
          entries.add(entry); // in the order of their changes
          onChange(isConnected);
        },
      });
      const entry: Entry = { ...owner, digest: digestOf(token), connection };
      entries.add(entry);
      void connection.closed.then(() => {
        entries.delete(entry);
        remember(entry);
      });
      return connection;
    },
    resume(wire, { token, received }, { keyId, targetId }) {
      const digest = digestOf(token);
      const isSame = (one: { digest: Buffer }): boolean => timingSafeEqual(one.digest, digest);
      const found = [...entries].find(isSame);
      const over = found?.connection.endReason ?? ended.find(isSame)?.reason;
      if (over !== undefined) return { code: ENDED, reason: over };
      if (found === undefined || found.keyId !== keyId || found.targetId !== targetId) {
        return { code: UNKNOWN, reason: NO_TOKEN };
      }
      const { connection } = found;
      if (!connection.canContinueAfter(received)) {
        return { code: MALFORMED, reason: NO_SUCH_MESSAGE };
      }
      connection.resume(connect(wire), received);
      return undefined;
    },
    revoke(keyIds) {
      const revoked = [...entries].filter(({ keyId }) => keyIds.includes(keyId));
      for (const { connection } of revoked) connection.revoke(REVOKED);
    },
    makeRoom() {
      const held = [...entries].find(({ connection }) => !connection.isConnected);
      held?.connection.close(POLICY_VIOLATION, ROOM);
      return held !== undefined;
    },
  };
}

function openBudget({
  pipe,
  stallMs,
  all,
}: {
  pipe: Pick<Pipe, 'pause' | 'resume'>;
  stallMs: number;
  all(): ResumableConnection[];
}): { onBytes(delta: number): void } {
  const me = {};
  let total = 0;
  /** Of one message, since reading has paused. */
  let longest = 0;
  let stall: NodeJS.Timeout | undefined;
  const goOn = (): void => {
    clearTimeout(stall);
    stall = undefined;
    longest = 0;
    pipe.resume(me);
  };
  const closeHeld = (): void => {
    const held = all().filter(({ isConnected, bytes }) => !isConnected && bytes > 0);
    held.sort((one, other) => other.bytes - one.bytes);
    for (const connection of held) {
      if (total <= KEPT_MAX_BYTES) return;
      connection.close(POLICY_VIOLATION, TOO_MUCH);
    }
  };
  const closeSilent = (): void => {
    const connections = all();
    const share = KEPT_MAX_BYTES / connections.length;
    for (const connection of connections.filter(({ bytes }) => bytes > share)) {
      connection.close(POLICY_VIOLATION, SILENT);
    }
    goOn();
  };
  return {
    onBytes(delta) {
      total += delta;
      if (stall !== undefined && total < CAUGHT_UP_BYTES) goOn();
      if (total <= KEPT_MAX_BYTES) return;
      closeHeld();
      if (total <= KEPT_MAX_BYTES) return;
      longest = Math.max(longest, delta);
      // the relay answers many commands itself, whether Chrome is read or not
      if (total > 2 * KEPT_MAX_BYTES + longest) return closeSilent();
      if (stall !== undefined) return;
      pipe.pause(me);
      stall = setTimeout(closeSilent, stallMs);
    },
  };
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
