/** The tables of the guide that say how sessions and connections end, and the check of a row. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { equal, is, match } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../../proto/common/must.ts';
import { until } from '../../../support/poll.ts';
import { familyOf } from '../../../support/service/processes.ts';
import type { Stack } from '../../../support/service/stack.ts';

const GUIDE = new URL('../../../../gateway/web/docs/guide/sessions.md', import.meta.url);
/** Some minutes, on a busy machine. */
const ENDED_MS = 420_000;
/** Each look is a line of the log, of which a stack keeps 4 MiB. */
export const POLL_MS = 250;

/** The cells of a row: the cause and what follows from it. */
export type Row = [cause: string, ...cells: string[]];

export type Session = { id: string; status: string; endReason?: string; connectUrl: string };
/** `closed`: how its client was closed, when the row tells it. */
export type Made = { session: { id: string }; closed?: Promise<string> };

/** The rows of the first table below the heading. */
export function rowsBelow(heading: string): Row[] {
  const [, section = ''] = readFileSync(GUIDE, 'utf8').split(`\n${heading}\n`);
  const [table = ''] = /(?:^\|.*\n)+/m.exec(section) ?? [];
  const lines = table.trim().split('\n').slice(2);
  return lines.map(
    (line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((one) => one.trim()) as Row,
  );
}

/** The name that begins the cause of the row; of several, the longest. */
export function nameOf(names: readonly string[], [cause]: Row): string | undefined {
  const fitting = names.filter((name) => cause.startsWith(name));
  return fitting.toSorted((one, other) => other.length - one.length)[0];
}

/** Each row has a maker of its own, and each maker a row. */
export function checkMakers(rows: readonly Row[], names: readonly string[]): void {
  const made = rows.map((row) => nameOf(names, row));
  equal(
    rows.filter((_, at) => made[at] === undefined),
    [],
  );
  equal(made.toSorted(), names.toSorted());
}

/** `...` in a cell stands for any text. */
export function cell(text: string): RegExp {
  const literal = text.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('.+')}$`);
}

/** The status, the reason, the close of the client and the log are those of the row. */
export async function checkEnd(
  { call, logs }: Pick<Stack, 'call' | 'logs'>,
  [cause, status = '', reason = '', close = '']: Row,
  { session, closed }: Made,
): Promise<void> {
  const ended = await until(
    async () => {
      const now = await call<Session>(`/v1/sessions/${session.id}`);
      return now.status !== 'RUNNING' && now.status !== 'PENDING' && now;
    },
    ENDED_MS,
    POLL_MS,
  );
  is(ended.status, status, `${cause}: ${ended.endReason}`);
  match(String(ended.endReason), cell(reason), cause);
  const heard = await closed;
  if (heard !== undefined) match(heard, cell(close), `${cause}: ${heard}`);
  else is(close, '', cause);
  const told = () => endsIn(logs()).filter(({ sessionId }) => sessionId === session.id);
  await until(() => told().length > 0, 30_000).catch(() => undefined);
  equal(
    told().map(({ end, reason: said }) => [end, said]),
    [[status, ended.endReason]],
    `${cause}: the log`,
  );
}

type Told = { msg?: string; sessionId?: string; end?: string; reason?: string };

function endsIn(logs: string): Told[] {
  const lines = logs.split('\n').filter((line) => line.includes('"a session has ended"'));
  return lines.map((line) => JSON.parse(line) as Told);
}

/** Connects a client to the session. */
export async function connected(session: Session, url = session.connectUrl): Promise<Connected> {
  const client = new WebSocket(url);
  const closed = closeOf(client);
  closed.catch(() => undefined); // of a refused one, the next line reports it
  await once(client, 'open');
  return { session, client, closed };
}

/** 1006 is what clients show for a connection without a close frame. RFC 6455 7.4.1. */
export async function closeOf(client: WebSocket): Promise<string> {
  const [code, reason] = await once(client, 'close');
  return code === 1006 ? 'no close frame (1006)' : `${code} ${reason}`;
}

export type Connected = Required<Made> & { session: Session; client: WebSocket };

export const create = (stack: Pick<Stack, 'call'>, json: object = {}) =>
  stack.call<Session>('/v1/sessions', { json });

export async function begun(stack: Pick<Stack, 'call'>, json: object = {}): Promise<Connected> {
  return await connected(await create(stack, json));
}

export const release = (stack: Pick<Stack, 'call'>, { id }: { id: string }) =>
  stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });

/** The answer to a command of a client. */
export async function ask(
  client: WebSocket,
  command: { id: number; method: string; params?: object; sessionId?: string },
): Promise<Record<string, unknown>> {
  const answer = new Promise<Record<string, unknown>>((resolve) => {
    client.on('message', (bytes) => {
      const message = JSON.parse(String(bytes)) as { id?: number; result?: object };
      if (message.id === command.id) resolve((message.result ?? {}) as Record<string, unknown>);
    });
  });
  client.send(JSON.stringify(command));
  return await answer;
}

/** A CDP session of the page. */
export async function attached(
  client: WebSocket,
): Promise<{ sessionId: string; targetId: string }> {
  const found = await ask(client, { id: 1, method: 'Target.getTargets' });
  const pages = found['targetInfos'] as { type: string; targetId: string }[];
  const page = pages.find(({ type }) => type === 'page');
  const { targetId } = must(page, 'a page');
  const params = { targetId, flatten: true };
  const { sessionId } = await ask(client, { id: 2, method: 'Target.attachToTarget', params });
  return { sessionId: String(sessionId), targetId };
}

/** Evaluates expressions in the session's page, without waiting for the answers. */
export async function evaluate(client: WebSocket, ...expressions: string[]): Promise<void> {
  const { sessionId } = await attached(client);
  for (const [at, expression] of expressions.entries()) {
    const params = { expression, returnByValue: true };
    client.send(JSON.stringify({ id: 3 + at, method: 'Runtime.evaluate', params, sessionId }));
  }
}

/** Takes memory until its browser is ended. */
export const HUNGRY = `(async () => {
  globalThis.kept = [];
  for (;;) {
    kept.push(new Uint8Array(16 << 20).fill(1));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
})()`;

/** Main processes of browsers: those without a type. */
export function browsersOf({ pid }: Pick<Stack, 'pid'>): number[] {
  return familyOf(pid)
    .filter(({ command }) => command.includes('--remote-debugging-pipe'))
    .filter(({ command }) => !command.includes('--type=') && !command.includes('bwrap'))
    .map((one) => one.pid);
}

/** The session that was created with this mark in its metadata. */
export async function marked(stack: Pick<Stack, 'call'>, mark: string): Promise<Session> {
  const q = encodeURIComponent(`user_metadata['mark']:'${mark}'`);
  return await until(async () => (await stack.call<Session[]>(`/v1/sessions?q=${q}`))[0]);
}
