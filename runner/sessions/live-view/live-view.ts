/**
 * The live view of one session: sockets that show its pages and take input for them. No page is
 * captured while there is no viewer.
 */
import type { IncomingMessage } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import { openPages, type Pages } from '../../browser/cdp/pages.ts';
import type { Chrome } from '../../browser/launch.ts';
import type { SessionHandoffs } from '../handoffs.ts';
import { refuse } from '../refusal.ts';
import type { ServeView } from '../session.ts';
import { openScreencasts } from './screencast.ts';
import { Viewer } from './viewer.ts';

/** In bytes: pasted text; other input is far smaller. */
const MESSAGE_MAX_BYTES = 1 << 20;
/** Ours: a team that watches together. */
const VIEWERS_MAX = 32;
/** Ours: a viewer without a pong is disconnected after two pings. */
const PING_MS = 30_000;
/** Ours: Chrome reports no title that changes without a navigation. */
const REFRESH_MS = 1_000;
/** The maximum of a timer; a session is far shorter. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const EXPIRED = 'the live view has expired';

export type LiveView = {
  /**
   * Serves an upgrade that the caller has authorised. `target` is the one tab to show; absent: the
   * active one. Query: `readonly=true`; `until`, in ms since 1970, when the view expires;
   * `handoff`, the id of the handoff with which it ends.
   */
  view: ServeView;
  readonly viewers: number;
  /** The session has ended: closes all viewers. */
  close(): Promise<void>;
};

export function openLiveView(
  chrome: Pick<Chrome, 'pipe'>,
  { log, now, handoffs }: { log: Log; now: () => number; handoffs: SessionHandoffs },
): LiveView {
  const { pipe } = chrome;
  const screencasts = openScreencasts(pipe);
  const viewers = new Set<Viewer>();
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false, // JPEG is compressed already
    maxPayload: MESSAGE_MAX_BYTES,
  });
  let connecting = 0;
  let isClosed = false;

  const end = async (): Promise<void> => {
    isClosed = true;
    for (const viewer of viewers) viewer.close(1001, 'the session has ended');
  };
  const addViewer = async ({
    request,
    socket,
    head,
    target,
  }: Parameters<ServeView>[0]): Promise<void> => {
    const pages = await openPages(chrome);
    if (socket.destroyed) return;
    const { isReadOnly, lastsMs, handoffId } = viewOptions(request, now());
    server.handleUpgrade(request, socket, head, (webSocket) => {
      const shown = { pipe, pages, screencasts, target, isReadOnly, handoffId, log };
      const options = { ...shown, socket: webSocket, finish: handoffs.finish };
      const viewer = new Viewer(options);
      viewers.add(viewer);
      viewer.onHandoff(handoffs.pending);
      reportControl(viewers);
      webSocket.once('close', () => {
        viewers.delete(viewer);
        reportControl(viewers);
      });
      keepAlive(webSocket, { pages, lastsMs, expire: () => viewer.close(1008, EXPIRED) });
      if (isClosed) viewer.close(1001, 'the session has ended');
    });
  };
  void pipe.closed.then(end);
  handoffs.onChange(() => {
    for (const viewer of viewers) viewer.onHandoff(handoffs.pending);
  });

  return {
    close: end,
    get viewers() {
      return viewers.size;
    },
    view(upgrade) {
      const { socket } = upgrade;
      socket.on('error', () => socket.destroy());
      if (isClosed) return refuse(socket, 410, 'The session has ended.');
      if (viewers.size + connecting >= VIEWERS_MAX) {
        return refuse(socket, 429, `A session has ${VIEWERS_MAX} viewers at most.`);
      }
      connecting += 1;
      addViewer(upgrade)
        .catch((error: unknown) => {
          log.warn({ error: String(error) }, 'cannot open a live view');
          refuse(socket, 502, 'The browser of this session does not answer.');
        })
        .finally(() => {
          connecting -= 1;
        });
    },
  };
}

/** Tells each viewer whether another one may take input. */
function reportControl(viewers: ReadonlySet<Viewer>): void {
  const inControl = [...viewers].filter(({ isReadOnly }) => !isReadOnly);
  for (const viewer of viewers) {
    viewer.onControl(inControl.some((other) => other !== viewer));
  }
}

function viewOptions(
  { url = '/' }: IncomingMessage,
  now: number,
): { isReadOnly: boolean; lastsMs: number; handoffId: string | undefined } {
  const query = URL.parse(url, 'ws://host')?.searchParams;
  const until = Number(query?.get('until') ?? Number.POSITIVE_INFINITY);
  const lastsMs = Number.isNaN(until) ? 0 : Math.max(0, until - now);
  const handoffId = query?.get('handoff') ?? undefined;
  return { isReadOnly: query?.get('readonly') === 'true', lastsMs, handoffId };
}

/** Runs while a viewer is connected: expiry, pings, and refreshes of titles. */
function keepAlive(
  socket: WebSocket,
  { pages, lastsMs, expire }: { pages: Pages; lastsMs: number; expire: () => void },
): void {
  let isThere = true;
  socket.on('pong', () => {
    isThere = true;
  });
  const expiry = setTimeout(expire, Math.min(lastsMs, TIMER_MAX_MS));
  // Keeps an idle connection open through proxies, and closes one that sends no pong.
  const pings = setInterval(() => {
    if (!isThere) socket.terminate();
    isThere = false;
    socket.ping();
  }, PING_MS);
  const refreshes = setInterval(() => {
    pages.refresh().catch(() => undefined); // rejects when Chrome is gone, which ends the view
  }, REFRESH_MS);
  socket.once('close', () => {
    clearTimeout(expiry);
    clearInterval(pings);
    clearInterval(refreshes);
  });
}
