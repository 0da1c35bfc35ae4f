/**
 * The project's events as they happen, for `tabern listen`: a long poll with a cursor. Each call
 * keeps the project's events for one more minute, so a client that keeps polling misses none; after
 * a longer absence, events without a subscribed webhook may be missing.
 */

import type { WebhookServiceService } from '../../proto/gen/tabern/v1/webhooks.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import { inRange, invalidCursor } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import type { HeardEvent } from '../store/types/deliveries.ts';
import type { Store } from '../store/types.ts';

type Handlers = Service<typeof WebhookServiceService, ProjectCaller>;

/** In milliseconds. Ours: the longest poll, and time to forward its events. */
const LISTENING_MS = 60_000;
/** Polls of one project at once. Ours: each event wakes all of them. */
const POLLS_MAX = 100;
/** Of 20 KiB each at most. */
const LIMIT_MAX = 100;
/** In seconds. Ours: below the default deadline of 30 s. */
const WAIT_MAX_S = 25;
/** In milliseconds. Ours: an event is read soon after the transactions before it have ended. */
const EARLY_MS = 100;
const CURSOR = /^e([0-9a-z]{1,10})$/;

type Options = {
  store: Store;
  now: () => number;
  closing: AbortSignal;
};

export function listenerHandlers(options: Options): Pick<Handlers, 'listEvents'> {
  const { store, now, closing } = options;
  const polls = openShares(Number.POSITIVE_INFINITY, POLLS_MAX);

  /** A slot among the project's polls. Throws CONCURRENCY_LIMIT when none is free. */
  function enter(projectId: string): Disposable {
    if (!polls.acquire(projectId, 1)) {
      const message = `Max concurrent polls for events (${POLLS_MAX}) reached.`;
      throw new Fault('CONCURRENCY_LIMIT', message, { limit: POLLS_MAX, current: POLLS_MAX });
    }
    return { [Symbol.dispose]: () => polls.release(projectId, 1) };
  }

  return {
    async listEvents({ cursor, limit = LIMIT_MAX, wait = 0 }, { projectId, call }) {
      inRange('limit', limit, { min: 1, max: LIMIT_MAX });
      inRange('wait', wait, { max: WAIT_MAX_S });
      using _ = enter(projectId);
      const read = cursor === undefined ? undefined : readCursor(cursor);
      const last = await store.listen({ projectId, until: now() + LISTENING_MS });
      if (read === undefined) return { data: [], nextCursor: writeCursor(last) };
      // Numbers may begin anew where the database was restored from a backup.
      const behind = Math.min(read, last);
      const look = () => store.eventsAfter({ projectId, after: behind, limit });
      const { events } = await longPoll(store, `events:${projectId}`, look, {
        call,
        closing,
        waitMs: wait * 1_000,
        isDone: ({ events: { length } }) => length > 0,
        againMs: ({ isEarly }) => (isEarly ? EARLY_MS : Number.POSITIVE_INFINITY),
      });
      const data = events.map(toEvent);
      return { data, nextCursor: writeCursor(events.at(-1)?.seq ?? behind) };
    },
  };
}

function toEvent({ id, type, body }: HeardEvent) {
  return { id, type, body: Buffer.from(body).toString('utf8') };
}

function writeCursor(seq: number): string {
  return `e${seq.toString(36)}`;
}

function readCursor(text: string): number {
  const digits = CURSOR.exec(text)?.[1];
  if (digits === undefined) throw invalidCursor();
  return Number.parseInt(digits, 36);
}
