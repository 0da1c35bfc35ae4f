/**
 * The numbers of a resumable connection, with the client's half of them: whatever is cut, each side
 * receives every message of the other one once and in order.
 */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPauses } from '../../../../runner/browser/cdp/pauses.ts';
import { Numbering } from '../../../../runner/resume/numbering.ts';
import type { Closed, Connection } from '../../../../runner/sessions/relay/connection.ts';
import { ReplayBuffer } from '../../../../runner/sessions/relay/replay-buffer.ts';
import { openResumableConnection } from '../../../../runner/sessions/relay/resumable-connection.ts';
import { sized } from '../../../support/whole.ts';

const test = suite('runner/sessions/relay/resumable-connection');
const LONG_MS = 1_000_000;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A WebSocket whose messages arrive when the test delivers them, or never. */
function openLine() {
  const { promise: closed, resolve } = Promise.withResolvers<Closed>();
  const down: string[] = [];
  const closes: string[] = [];
  let listener: Parameters<Connection['onMessage']>[0] | undefined;
  const reading = openPauses({ pause: () => undefined, resume: () => undefined });
  const connection: Connection = {
    reading,
    closed,
    send: (message) => void down.push(String(message)),
    onMessage: (added) => {
      listener = added;
    },
    ping: () => undefined,
    close: (code, reason) => void closes.push(`${code} ${reason}`),
    isOpen: true,
    isConnected: true,
  };
  const up: string[] = [];
  return {
    connection,
    down,
    up,
    closes,
    arrive: (text: string) => listener?.(Buffer.from(text), false),
    end: (how: Partial<Closed>) => resolve({ isBroken: false, hasFailed: false, ...how }),
  };
}

type Line = ReturnType<typeof openLine>;

function open(resumeMs = LONG_MS) {
  const line = openLine();
  const changes: boolean[] = [];
  let bytes = 0;
  const connection = openResumableConnection({
    first: line.connection,
    greeting: Buffer.from('hello'),
    resumeMs,
    onChange: (isConnected) => void changes.push(isConnected),
    onBytes: (delta) => (bytes += delta),
  });
  const commands: string[] = [];
  connection.onMessage((text) => {
    if (!connection.takes?.(text)) commands.push(String(text));
  });
  return { line, connection, commands, changes, bytes: () => bytes };
}

type Step = ['command' | 'event' | 'up' | 'down' | 'cut' | 'replace', number];

/** A client over lines, each of which is cut at some time; the messages on it are then lost. */
async function run(steps: readonly Step[]) {
  const { line: first, connection, commands, bytes } = open();
  const numbering = new Numbering();
  const events: string[] = [];
  const sent = { commands: [] as string[], events: [] as string[] };
  let line: Line = first;
  let hasBegun = false;
  const say = (text: string): void => void (hasBegun && line.up.push(text));
  const hear = (text: string): void => {
    if (!hasBegun) {
      hasBegun = true;
      if (text !== 'hello') numbering.acknowledge(JSON.parse(text).params.received);
      for (const command of numbering.commands) say(command);
    } else if (numbering.receive(text)) events.push(text);
    if (numbering.isDue) say(numbering.acknowledgement());
  };
  const resume = (): void => {
    line = openLine();
    hasBegun = false;
    assert.ok(connection.canContinueAfter(numbering.received));
    connection.resume(line.connection, numbering.received);
  };
  const deliver = (from: string[], count: number, to: (text: string) => void): void => {
    for (const text of from.splice(0, count)) to(text);
  };
  const acts: Record<Step[0], (count: number) => void | Promise<void>> = {
    command(count) {
      for (let at = 0; at < count; at += 1) {
        const text = `{"id":${sent.commands.length}}`;
        sent.commands.push(text);
        numbering.send(text);
        say(text);
      }
    },
    event(count) {
      for (let at = 0; at < count; at += 1) {
        const text = `{"method":"A.b","params":${sent.events.length}}`;
        sent.events.push(text);
        connection.send(Buffer.from(text));
      }
    },
    up: (count) => deliver(line.up, count, line.arrive),
    down: (count) => deliver(line.down, count, hear),
    async cut() {
      line.end({ isBroken: true });
      await turn();
      resume();
    },
    replace: resume,
  };
  for (const [name, count] of steps) await acts[name](count);
  while (line.up.length + line.down.length > 0) {
    await acts.down(line.down.length);
    await acts.up(line.up.length);
  }
  assert.equal(commands, sent.commands);
  assert.equal(events, sent.events);
  assert.ok(bytes() <= 64 * 300, `${bytes()} bytes are kept`);
  connection.close(1000, 'over');
  assert.is(bytes(), 0);
}

test('each side receives every message once and in order, whatever is cut', async () => {
  const name = fc.constantFrom<Step[0]>('command', 'event', 'up', 'down', 'cut', 'replace');
  const steps = fc.array(fc.tuple(name, fc.integer({ min: 1, max: 100 })), { maxLength: 60 });
  await fc.assert(fc.asyncProperty(steps, run), { numRuns: sized(300, 10_000) });
});

test('a broken connection is held; a close frame and an error of the protocol end it', async () => {
  const held = open();
  held.line.end({ isBroken: true });
  await turn();
  assert.equal([held.connection.isOpen, held.connection.isConnected], [true, false]);
  assert.equal(held.changes, [false]);
  const next = openLine();
  held.connection.resume(next.connection, 0);
  assert.equal(held.changes, [false, true]);
  next.end({});
  assert.equal(await held.connection.closed, { isBroken: false, hasFailed: false });
  assert.is(held.connection.endReason, 'the client has left');
  const failed = open();
  failed.line.end({ isBroken: true, hasFailed: true });
  await failed.connection.closed;
  assert.not.ok(failed.connection.isOpen);
});

test('a held connection ends after its time, at a close, and when its key is revoked', async () => {
  const late = open(5);
  late.connection.send(Buffer.from('{}'));
  late.line.end({ isBroken: true });
  await late.connection.closed;
  assert.is(late.connection.endReason, 'the time to resume has passed');
  assert.is(late.bytes(), 0);
  for (const end of ['close', 'revoke'] as const) {
    const one = open();
    one.line.end({ isBroken: true });
    await turn();
    if (end === 'close') one.connection.close(1000, 'the reason');
    else one.connection.revoke('the reason');
    await one.connection.closed;
    assert.is(one.connection.endReason, 'the reason');
  }
  const connected = open();
  connected.connection.revoke('the reason');
  connected.line.end({ isBroken: true }); // as its socket is destroyed
  await connected.connection.closed;
  assert.equal(connected.changes, [], 'it was not held');
});

test('an old WebSocket is replaced, and its messages are ignored', async () => {
  const { line, connection, commands } = open();
  const next = openLine();
  connection.resume(next.connection, 0);
  assert.equal(line.closes, ['1008 the connection was resumed by another WebSocket']);
  line.arrive('{"id":1}');
  next.arrive('{"id":2}');
  line.end({ isBroken: true });
  await turn();
  assert.equal(commands, ['{"id":2}']);
  assert.ok(connection.isConnected);
  connection.close(1000, '');
});

test('a wrong acknowledgement closes the connection with 4400', async () => {
  const wrong = ['2', '-1', '1.5', '"1"', '1}', '9'.repeat(100)];
  for (const received of wrong) {
    const { line, connection, commands } = open();
    connection.send(Buffer.from('{}'));
    line.arrive(`{"method":"Tabern.received","params":{"received":${received}}}`);
    assert.equal(line.closes, ['4400 no such number of received messages'], received);
    assert.equal(commands, []);
  }
  const { line, connection } = open();
  connection.send(Buffer.from('{}'));
  line.arrive('{"id":1}');
  line.arrive('{"method":"Tabern.received","params":{"received":1}}');
  assert.equal(line.closes, []);
  assert.is(line.down.at(-1), '{"method":"Tabern.received","params":{"received":1}}');
  assert.is(connection.bytes, 0);
  assert.not.ok(connection.canContinueAfter(0), 'it was acknowledged');
  assert.not.ok(connection.canContinueAfter(2));
  assert.not.ok(connection.canContinueAfter(Number.NaN));
  connection.close(1000, '');
});

test('a kept message keeps no other bytes, whatever it is a part of', () => {
  const buffer = new ReplayBuffer();
  const chunk = Buffer.alloc(64 << 10, 'x');
  const kept = buffer.add(chunk.subarray(10, 30));
  assert.is(kept.buffer.byteLength, 20);
  assert.is(String(kept), 'x'.repeat(20));
});

test.run();
