import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openMetrics, textOf } from '../../../../proto/common/metrics.ts';
import { metered } from '../../../../runner/browser/cdp/latency-metrics.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';

const test = suite('runner/browser/cdp/latency-metrics');

/** A pipe that records writes and receives messages from the test. */
async function openFake() {
  const listeners = new Map<string, (raw: Buffer) => void>();
  const written: string[] = [];
  const plain = {
    write: (message: string) => written.push(message) > 0,
    claim: (id: string, listener: (raw: Buffer) => void) => void listeners.set(id, listener),
    release: (id: string) => void listeners.delete(id),
    isPaused: true,
  } as unknown as Pipe;
  const metrics = await openMetrics('runner');
  const pipe = metered(plain, metrics);
  const say = (id: string, message: object) =>
    listeners.get(id)?.(Buffer.from(JSON.stringify(message)));
  const count = async () => {
    const text = await textOf([await metrics.samples()]);
    return Number(/tabern_cdp_round_trip_seconds_count (\d+)/.exec(text)?.[1] ?? 0);
  };
  return { pipe, say, count, written };
}

test('one command at a time is measured, by its own response', async () => {
  const { pipe, say, count, written } = await openFake();
  const heard: string[] = [];
  pipe.claim('A', (raw) => heard.push(`A ${raw}`));
  pipe.claim('B', (raw) => heard.push(`B ${raw}`));
  const bytes = (message: object) => Buffer.from(JSON.stringify(message));
  const command = bytes({ id: 7, method: 'Page.enable', sessionId: 'A' });
  assert.ok(pipe.write(command));
  pipe.write(bytes({ id: 8, method: 'Page.enable', sessionId: 'B' }));
  say('B', { id: 7, result: {} });
  say('A', { id: 77, result: {} });
  say('A', { method: 'Page.loaded' });
  assert.is(await count(), 0);
  say('A', { id: 7, result: {} });
  assert.is(await count(), 1);
  say('A', { id: 7, result: {} });
  assert.is(await count(), 1);
  assert.is(heard.length, 5, 'all of it passes');
  assert.is(written[0], command);
  assert.ok(pipe.isPaused);
});

test('the end of a session drops its sample', async () => {
  const { pipe, say, count } = await openFake();
  pipe.claim('A', () => undefined);
  pipe.write(Buffer.from(JSON.stringify({ id: 1, method: 'Page.enable', sessionId: 'A' })));
  pipe.release('A');
  pipe.claim('A', () => undefined);
  say('A', { id: 1, result: {} });
  assert.is(await count(), 0);
});

test.run();
