/**
 * Clients of a service whose processes are killed. Each answer is 2xx, 503 with Retry-After, or,
 * for a request that may have been executed, 500 with an unknown outcome; all else is unexpected.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import type { Stack } from '../../support/service/stack.ts';

/** Between two requests of a client. */
const PAUSE_MS = 50;
/** Below the limit of a project. */
const LABELS_MAX = 900;
/** A client continues without its invocation after this time; the end is checked later. */
const PATIENCE_MS = 10_000;
/** Ours: a start of a browser on a busy machine. */
const START_MS = 180_000;

export type Answers = ReturnType<typeof openAnswers>;

/** Requests to the stack, and what was answered. */
export function openAnswers(stack: Pick<Stack, 'fetch'>) {
  const unexpected: string[] = [];
  /** By performance.now(). */
  const refusedAt: number[] = [];
  let unknown = 0;
  let done = 0;
  return {
    unexpected,
    refusedAt,
    unknown: () => unknown,
    done: () => done,
    /** The body of a 2xx; undefined for another answer. */
    async send<T>(path: string, json?: unknown): Promise<T | undefined> {
      const method = json === undefined ? 'GET' : 'POST';
      const startedAt = performance.now();
      const seen = (words: string) => {
        const ms = Math.round(performance.now() - startedAt);
        unexpected.push(`${method} ${path} at ${Math.round(startedAt)}, after ${ms} ms: ${words}`);
      };
      try {
        const answer = await stack.fetch(path, json === undefined ? {} : { json });
        const text = await answer.text();
        if (answer.ok) {
          done += 1;
          return JSON.parse(text) as T;
        }
        const isRefused = answer.status === 503 && Number(answer.headers.get('retry-after')) > 0;
        if (isRefused) refusedAt.push(performance.now());
        else if (method === 'POST' && /The outcome is unknown/.test(text)) unknown += 1;
        else seen(`${answer.status} ${text}`);
      } catch (error) {
        seen(String((error as Error).cause ?? error));
      }
      return undefined;
    },
  };
}

export type Written = { id: string } & Record<string, unknown>;

export type Load = AsyncDisposable & {
  /** Acknowledged labels, as they were answered. */
  labels: readonly Written[];
  /** Acknowledged invocations, and the name of the path that their handler requests. */
  invocations: readonly { id: string; path: string }[];
  stop(): Promise<void>;
};

/** `url`: of a site that handlers request. */
export function startLoad(
  answers: Answers,
  { functionId, url, clients }: { functionId: string; url: string; clients: number },
): Load {
  const labels: Written[] = [];
  const invocations: { id: string; path: string }[] = [];
  let isOver = false;
  const watched = async (id: string) => {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until && !isOver) {
      const one = await answers.send<{ status: string }>(`/v1/functions/invocations/${id}`);
      if (one?.status === 'COMPLETED' || one?.status === 'FAILED') return;
      await pause(PAUSE_MS * 4);
    }
  };
  const invoking = async (client: number) => {
    for (let n = 0; !isOver; n += 1) {
      const path = `/run-${client}-${n}`;
      const json = { params: { url: url + path, n } };
      const made = await answers.send<{ id: string }>(`/v1/functions/${functionId}/invoke`, json);
      if (made) {
        invocations.push({ id: made.id, path });
        await watched(made.id);
      }
      await pause(PAUSE_MS);
    }
  };
  const writing = async () => {
    for (let n = 0; !isOver && n < LABELS_MAX; n += 1) {
      const made = await answers.send<Written>('/v1/labels', { name: `label ${n}` });
      if (made) labels.push(made);
      await pause(PAUSE_MS);
      await answers.send('/v1/labels');
    }
  };
  const running = [...Array(clients).keys()].map(invoking).concat(writing());
  const stop = async () => {
    isOver = true;
    await Promise.all(running);
  };
  return { labels, invocations, stop, [Symbol.asyncDispose]: stop };
}

/** A running session with a Playwright client and one that reads close codes. */
export type Live = {
  id: string;
  /** How many commands were answered; each wrote `mark <number>.` to the page's console. */
  marks(): number;
  /** The first error of the client, if any. */
  failure(): string | undefined;
  closed(): { code: number; reason: string } | undefined;
  close(): Promise<void>;
};

type Session = { id: string; status: string; connectUrl: string };

export async function openLive(answers: Answers): Promise<Live> {
  const json = { keepAlive: true, timeout: 3_600 };
  const { id } = await until(() => answers.send<Session>('/v1/sessions', json), START_MS);
  const { connectUrl } = await until(async () => {
    const one = await answers.send<Session>(`/v1/sessions/${id}`);
    return one?.status === 'RUNNING' && one;
  }, START_MS);
  const socket = new WebSocket(connectUrl);
  let closed: { code: number; reason: string } | undefined;
  socket.on('close', (code, reason) => {
    closed = { code, reason: String(reason) };
  });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'a page');
  const marking = startMarks(page, browser);
  return {
    id,
    ...marking,
    closed: () => closed,
    async close() {
      await marking.stop();
      socket.terminate();
      await browser.close();
    },
  };
}

function startMarks(page: Page, browser: Browser) {
  let count = 0;
  let failure: string | undefined;
  let isOver = false;
  const running = (async () => {
    while (!isOver && browser.isConnected()) {
      await page.evaluate((n) => console.log(`mark ${n}.`), count);
      count += 1;
      await pause(PAUSE_MS * 2);
    }
    if (!isOver) failure = 'disconnected';
  })().catch((error: unknown) => {
    failure = String(error);
  });
  return {
    marks: () => count,
    failure: () => failure,
    stop: () => {
      isOver = true;
      return running;
    },
  };
}
