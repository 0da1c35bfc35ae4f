/**
 * Shared sessions: a link of the console shows one session to somebody without a login. Its holder
 * reads the facts, the picture (live without input, or recorded) and, when the link includes it,
 * the protocol log. Metadata, settings, files, events and URLs that drive the session are not
 * shown. Calls take no id: the token names the session.
 */
import type { ConsoleShareServiceService } from '../../proto/gen/tabern/v1/console_shares.pb.ts';
import type { SessionServiceService } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { notFound } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { dateOf } from '../api/answers.ts';
import type { Share } from '../api/authentication.ts';
import { inRange } from '../api/checks.ts';
import type { ProjectCaller, Service, ShareCaller } from '../api/interceptors.ts';
import type { Store } from '../store/types.ts';
import { runningSession, type ViewTokens } from './live-view.ts';
import { sessionFinder } from './sessions.ts';
import type { ShareTokens } from './share-tokens.ts';

/** Ours: a day, as long as the revocations of keys are kept for the links of recordings. */
const EXPIRES_IN = { min: 1, max: 86_400, unit: ' seconds' };

type Definition = typeof ConsoleShareServiceService;
type Reads = Pick<typeof SessionServiceService, 'listReplays' | 'getReplay' | 'listSessionLogs'>;

export function shareMaker(options: {
  store: Pick<Store, 'getSession'>;
  shares: Pick<ShareTokens, 'of'>;
  now: () => number;
}): Service<Pick<Definition, 'createSessionShare'>, ProjectCaller> {
  const { store, shares, now } = options;
  const find = sessionFinder(store);
  return {
    async createSessionShare({ id, expiresIn, hasLog }, { projectId, keyId }) {
      inRange('expiresIn', expiresIn, EXPIRES_IN);
      const session = await find(id, { projectId });
      const until = now() + expiresIn * 1_000;
      const token = shares.of({ sessionId: session.id, projectId, until, hasLog, keyId });
      return { url: `/console/share#${token}`, expiresAt: new Date(until) };
    },
  };
}

export function sharedSessions(options: {
  store: Pick<Store, 'getSession'>;
  views: Pick<ViewTokens, 'of'>;
  /** The project's own reads. */
  sessions: Service<Reads, ProjectCaller>;
}): Service<Omit<Definition, 'createSessionShare'>, ShareCaller> {
  const { store, views, sessions } = options;
  const find = sessionFinder(store);
  return {
    async getSharedSession(_, { share }) {
      const { startedAt, endedAt, endReason, ...row } = await find(share.sessionId, share);
      const { id, status, isReleased } = row;
      return {
        session: {
          id,
          status,
          createdAt: new Date(row.createdAt),
          startedAt: dateOf(startedAt),
          endedAt: dateOf(endedAt),
          expiresAt: new Date(row.expiresAt),
          endReason: endReason || undefined,
          isReleased,
          hasLog: share.hasLog,
          linkExpiresAt: new Date(share.until),
        },
      };
    },

    async getSharedLiveView(_, { share: { sessionId: id, projectId, keyId, until } }) {
      const session = await runningSession(store, { id, projectId });
      const expiresAt = new Date(Math.min(until, session.expiresAt));
      const token = views.of({ sessionId: id, expiresAt, keyId, isReadOnly: true });
      return { debuggerUrl: `/live?token=${token}&readonly=true` };
    },

    listSharedReplays: (_, { share, call }) =>
      sessions.listReplays({ id: share.sessionId }, projectOf(share, call)),

    async getSharedReplay({ pageId }, { share, call }) {
      const wanted = { id: share.sessionId, pageId };
      return { replay: await sessions.getReplay(wanted, projectOf(share, call)) };
    },

    async listSharedLogs({ from }, { share, call }) {
      if (!share.hasLog) throw notFound('Log', share.sessionId);
      return sessions.listSessionLogs({ id: share.sessionId, from }, projectOf(share, call));
    },
  };
}

/** The links of the answer end with the share, or with its API key. */
function projectOf({ projectId, keyId, until }: Share, call: Call): ProjectCaller {
  return { projectId, keyId, until, call };
}
