/** Changes of a project as they happen. The streams of one project share a feed. */
import type { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { IsRevoked } from '../projects/revoked-keys.ts';
import type { Store } from '../store/types.ts';
import { Feed, Stream } from './feed.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

/** Streams of one project. Ours: below half of the calls that a project may have. */
const STREAMS_MAX = 1_000;

type Options = {
  store: Pick<Store, 'onWake' | 'watchChanges' | 'unwatchChanges' | 'takeChanges'>;
  isRevoked: IsRevoked;
  now: () => number;
  /** Aborts when core closes: the streams end. */
  closing: AbortSignal;
};

export function consoleChanges(options: Options): Pick<Handlers, 'watchChanges'> {
  const { store, isRevoked, closing } = options;
  const feeds = new Map<string, Feed>();
  const shares = openShares(Number.POSITIVE_INFINITY, STREAMS_MAX);

  /** Adds the stream to the feed of the project. Throws CONCURRENCY_LIMIT. */
  function join(projectId: string, stream: Stream): Feed {
    if (!shares.acquire(projectId, 1)) {
      const message = `Max concurrent streams of changes (${STREAMS_MAX}) reached.`;
      throw new Fault('CONCURRENCY_LIMIT', message, { limit: STREAMS_MAX, current: STREAMS_MAX });
    }
    const feed = feeds.get(projectId) ?? new Feed(projectId, options);
    feeds.set(projectId, feed);
    feed.streams.add(stream);
    return feed;
  }

  /** A feed ends with its last stream. */
  function leave(projectId: string, stream: Stream): void {
    shares.release(projectId, 1);
    const feed = feeds.get(projectId);
    feed?.streams.delete(stream);
    if (feed === undefined || feed.streams.size > 0) return;
    feed.close();
    feeds.delete(projectId);
  }

  return {
    async *watchChanges({ kinds, after }, { projectId, keyId, call }) {
      const stream = new Stream(kinds.includes('ALL') ? [] : kinds);
      const feed = join(projectId, stream);
      using left = new DisposableStack();
      left.defer(() => leave(projectId, stream));
      left.defer(store.onWake('revocations', () => stream.ring()));
      const over = AbortSignal.any([call.signal, closing]);
      over.addEventListener('abort', () => stream.ring(), { once: true });
      await feed.started;
      if (feed.hasMissed(stream, after)) stream.add('ALL', { version: feed.version });
      while (!over.aborted) {
        if (keyId !== undefined && (await isRevoked(keyId))) throw keyRevoked();
        yield* stream.take();
        if (!over.aborted) await stream.rung();
      }
    },
  };
}

function keyRevoked(): Fault {
  return new Fault('API_KEY_INVALID', 'The API key was revoked.');
}
