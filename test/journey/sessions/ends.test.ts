/**
 * Each row of the table "When a session ends" of the guide happens, and the status, the reason and
 * the close of clients are those of the row; the runner's log has the same reason.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { familyOf } from '../../support/service/processes.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { IS_WHOLE } from '../../support/whole.ts';

const journey = suite('journey/sessions/ends');
const GUIDE = new URL('../../../gateway/web/docs/guide/sessions.md', import.meta.url);
/** The times of the first and of the third row, and the memory of the eighth. */
const env = {
  TABERN_SESSION_GRACE_MS: '200',
  TABERN_SESSION_RETURN_MS: '400',
  TABERN_BROWSER_MEMORY_MB: '512',
};
/** A minute, or five, and a busy machine. */
const ENDED_MS = 420_000;

type Session = { id: string; status: string; endReason?: string; connectUrl: string };
type Row = { cause: string; status: string; reason: string; close: string };
/** `closed`: how the client was closed, when the row tells it. */
type Made = { session: Session; client?: WebSocket; closed?: Promise<string> };

/** The rows of the table. */
function rowsOf(guide: string): Row[] {
  const [, section = ''] = guide.split('## When a session ends');
  const [, table = ''] = section.split('\n\n');
  const cells = table.split('\n').map((line) => line.split('|').map((one) => one.trim()));
  return cells.slice(2).map(([, cause = '', status = '', reason = '', close = '']) => {
    return { cause, status, reason, close };
  });
}

const rows = rowsOf(readFileSync(GUIDE, 'utf8'));

async function begun(stack: Stack, json: object = {}): Promise<Required<Made>> {
  const session = await stack.call<Session>('/v1/sessions', { json });
  const client = new WebSocket(session.connectUrl);
  const closed = once(client, 'close').then(([code, reason]) => `${code} ${reason}`);
  await once(client, 'open');
  return { session, client, closed };
}

/** Evaluates an expression in the session's page, without waiting for the answer. */
async function evaluate({ client }: Required<Made>, expression: string): Promise<void> {
  const ask = async (message: object): Promise<{ result: Record<string, unknown> }> => {
    client.send(JSON.stringify(message));
    const [bytes] = await once(client, 'message');
    return JSON.parse(String(bytes));
  };
  const { result } = await ask({ id: 1, method: 'Target.getTargets' });
  const pages = result['targetInfos'] as { type: string; targetId: string }[];
  const { targetId } = must(
    pages.find(({ type }) => type === 'page'),
    'a page',
  );
  const params = { targetId, flatten: true };
  client.send(JSON.stringify({ id: 2, method: 'Target.attachToTarget', params }));
  const sessionId = await new Promise<string>((resolve) => {
    client.on('message', (bytes) => {
      const { id, result: attached } = JSON.parse(String(bytes));
      if (id === 2) resolve(attached.sessionId);
    });
  });
  const method = 'Runtime.evaluate';
  client.send(JSON.stringify({ id: 3, method, params: { expression }, sessionId }));
}

/** Makes each cause happen, by the beginning of its row. */
const MAKERS: Record<string, (stack: Stack) => Promise<Made>> = {
  async 'the last client disconnected'(stack) {
    const { session, client } = await begun(stack);
    client.close();
    return { session };
  },
  async 'a client sent `Browser.close`'(stack) {
    const made = await begun(stack);
    made.client.send('{"id":1,"method":"Browser.close"}');
    return made;
  },
  async 'the last connection broke'(stack) {
    const { session, client } = await begun(stack);
    client.terminate();
    return { session };
  },
  async '`REQUEST_RELEASE`'(stack) {
    const made = await begun(stack, { keepAlive: true });
    const json = { status: 'REQUEST_RELEASE' };
    await stack.call(`/v1/sessions/${made.session.id}`, { json });
    return made;
  },
  'its `timeout` passed': (stack) => begun(stack, { timeout: 60 }),
  async 'no client and no viewer connected'(stack) {
    return { session: await stack.call<Session>('/v1/sessions', { json: {} }) };
  },
  async 'the browser crashed'(stack) {
    const before = new Set(browsersOf(stack));
    const made = await begun(stack, { keepAlive: true });
    const own = browsersOf(stack).filter((pid) => !before.has(pid));
    for (const pid of own) process.kill(pid, 'SIGKILL');
    return made;
  },
  async 'the browser used more memory'(stack) {
    const made = await begun(stack, { keepAlive: true });
    await evaluate(made, HUNGRY);
    return made;
  },
  async 'the runner was killed'(stack) {
    const made = await begun(stack, { keepAlive: true });
    process.kill(await stack.runnerPid(), 'SIGKILL');
    return made;
  },
  async 'the service was stopped'(stack) {
    const made = await begun(stack, { keepAlive: true });
    await stack.kill('SIGTERM');
    return made;
  },
};

/** Takes memory until its browser is ended. */
const HUNGRY = `(async () => {
  globalThis.kept = [];
  for (;;) {
    kept.push(new Uint8Array(16 << 20).fill(1));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
})()`;

/** Main processes of browsers: those without a type. */
function browsersOf({ pid }: Stack): number[] {
  return familyOf(pid)
    .filter(({ command }) => command.includes('--remote-debugging-pipe'))
    .filter(({ command }) => !command.includes('--type=') && !command.includes('bwrap'))
    .map((one) => one.pid);
}

const makerOf = ({ cause }: Row) =>
  Object.entries(MAKERS).find(([beginning]) => cause.startsWith(beginning))?.[1];
/** Takes five minutes. */
const isLong = ({ cause }: Row) => cause.startsWith('no client and no viewer');
/** These end all sessions of their service. */
const isAlone = ({ cause }: Row) => /^the (?:runner|service) was/.test(cause);

/** `...` in a cell stands for any text. */
function cell(text: string): RegExp {
  const literal = text.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('.+')}$`);
}

/** Makes the row happen and compares all that tells of it. */
async function happens(stack: Stack, row: Row): Promise<void> {
  const { session, closed } = await must(makerOf(row), row.cause)(stack);
  if (row.cause.startsWith('the service was')) await stack.restart();
  const path = `/v1/sessions/${session.id}`;
  const ended = await until(async () => {
    const now = await stack.call<Session>(path);
    return now.status !== 'RUNNING' && now;
  }, ENDED_MS);
  is(ended.status, row.status, row.cause);
  match(String(ended.endReason), cell(row.reason), row.cause);
  if (closed) match(await closed, cell(row.close), row.cause);
  else is(row.close, '', row.cause);
  if (row.cause.startsWith('the runner was')) return; // it has no last word
  const said = stack
    .logs()
    .split('\n')
    .filter((line) => line.includes('a session has ended'));
  ok(
    said.some((line) => line.includes(row.status) && line.includes(String(ended.endReason))),
    `${row.cause}: ${said.join('\n')}`,
  );
}

journey('each row of the guide has what makes it happen', () => {
  equal(rows.map((row) => makerOf(row) === undefined && row.cause).filter(Boolean), []);
  is(rows.length, Object.keys(MAKERS).length);
});

journey('sessions end as the guide says', async () => {
  await using stack = await boot({ env });
  const together = rows.filter((row) => !isAlone(row) && (IS_WHOLE || !isLong(row)));
  const alone = rows.filter(isAlone);
  const [crash, ...others] = together.toSorted((a, b) => Number(isCrash(b)) - Number(isCrash(a)));
  await happens(stack, must(crash, 'a row')); // finds its browser by what starts meanwhile
  await Promise.all(others.map((row) => happens(stack, row)));
  for (const row of alone) await happens(stack, row);
});

const isCrash = ({ cause }: Row) => cause === 'the browser crashed';

journey.run();
