/** Viewers of a real Chrome's live view, over real sockets and without a page. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Page } from 'playwright-core';
import { type RawData, WebSocket } from 'ws';
import { type LiveView, openLiveView } from '../../../../runner/sessions/live-view/live-view.ts';
import { until } from '../../../support/poll.ts';
import { NO_HANDOFFS } from '../../../support/runner/browsers.ts';
import { type Lab, listen, log, openLab } from '../../browser/lab.ts';

/** Ours: a machine under load. */
export const LIMIT_MS = 60_000;

/** The time of the live view's clock. */
export const NOW = 1_800_000_000_000;

type Tab = { id: string; url: string; title: string; isShown: boolean };

export type LiveLab = Lab & { live: LiveView; viewUrl: string };

export type Viewing = {
  socket: WebSocket;
  /** As they came; the last one is what it sees. */
  frames: Buffer[];
  tabs: Tab[];
  size: { width: number; height: number } | undefined;
  notices: string[];
  /** Whether another viewer may take input. */
  isControlled: boolean;
  dialog: { kind: string; message: string; text: string } | null;
  /** Acknowledges each frame by default. */
  acks: boolean;
  send(message: object): void;
  closed: Promise<{ code: number; reason: string }>;
};

export async function openLiveLab(program?: string): Promise<LiveLab> {
  const lab = await openLab({ allow: ['127.0.0.0/8'], ...(program && { program }) });
  const live = openLiveView(lab.chrome, { log, now: () => NOW, handoffs: NO_HANDOFFS });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    const target = new URL(request.url ?? '/', 'http://runner').searchParams.get('target');
    live.view({ request, socket, head, target: target ?? undefined });
  });
  const port = await listen(server);
  return {
    ...lab,
    live,
    viewUrl: `ws://127.0.0.1:${port}/view`,
    async [Symbol.asyncDispose]() {
      await live.close();
      server.close();
      server.closeAllConnections();
      await lab[Symbol.asyncDispose]();
    },
  };
}

export async function look(url: string): Promise<Viewing> {
  const socket = new WebSocket(url);
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.on('close', (code, reason) => closed.resolve({ code, reason: reason.toString() }));
  const viewing: Viewing = {
    socket,
    frames: [],
    tabs: [],
    size: undefined,
    notices: [],
    isControlled: false,
    dialog: null,
    acks: true,
    send: (message) => socket.send(JSON.stringify(message)),
    closed: closed.promise,
  };
  socket.on('message', (bytes: RawData, isBinary: boolean) => hear(viewing, bytes, isBinary));
  await once(socket, 'open');
  return viewing;
}

function hear(viewing: Viewing, bytes: RawData, isBinary: boolean): void {
  if (isBinary) {
    viewing.frames.push(bytes as Buffer);
    if (viewing.acks) viewing.send({ type: 'ack' });
    return;
  }
  const message = JSON.parse(bytes.toString()) as {
    type: string;
    tabs: Tab[];
    text: string;
    isByOther: boolean;
    dialog: Viewing['dialog'];
    width: number;
    height: number;
  };
  if (message.type === 'tabs') viewing.tabs = message.tabs;
  else if (message.type === 'dialog') viewing.dialog = message.dialog;
  else if (message.type === 'control') viewing.isControlled = message.isByOther;
  else if (message.type === 'notice') viewing.notices.push(message.text);
  else viewing.size = { width: message.width, height: message.height };
}

/** The colour in the middle of a picture, as `r,g,b`, each to the nearest 51: JPEG is not exact. */
export function colourOf(page: Page, picture: Buffer): Promise<string> {
  const code = `(async (text) => {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const { data } = canvas.getImageData(bitmap.width >> 1, bitmap.height >> 1, 1, 1);
    return [...data].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
  })('${picture.toString('base64')}')`;
  return page.evaluate<string>(code);
}

/** Waits until the middle of what the viewer sees has this colour. */
export async function untilSees(viewing: Viewing, page: Page, colour: string): Promise<void> {
  await until(async () => {
    const last = viewing.frames.at(-1);
    return last !== undefined && (await colourOf(page, last)) === colour;
  }, LIMIT_MS);
}
