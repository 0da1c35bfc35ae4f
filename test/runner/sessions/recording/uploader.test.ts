/** The upload of segments to core, with an encoder controlled by the test. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Segment } from '../../../../runner/sessions/recording/encoder.ts';
import type { Track } from '../../../../runner/sessions/recording/uploader.ts';
import { until } from '../../../support/poll.ts';
import { ENCODED, frame, leaseOf, openBench } from './encoder-bench.ts';

const test = suite('runner/sessions/recording/uploader');
const never = new AbortController().signal;

test('projects take turns at the encoder, and each keeps a share of the buffers', async () => {
  const order: number[] = [];
  await using bench = openBench((_, frames) => {
    order.push(frames[0]?.lasts ?? 0);
    return ENCODED;
  }, 640);
  const second: Track = { ...bench.track, projectId: 'second', lease: leaseOf('second', []) };
  const frames = 30; // of 20 bytes: more than a project's share
  const kept = [bench.track, second].map((track) => {
    const buffer = bench.recordings.openFrameBuffer(`${track.projectId}-full`, track.projectId);
    const added = Array.from({ length: frames + 5 }, (_, at) => {
      return buffer.add({ jpeg: frame('twenty'.slice(0, 5)), at: at + 1 });
    });
    return { buffer, count: added.filter((isKept) => isKept).length };
  });
  assert.equal(
    kept.map(({ count }) => count > 5),
    [true, true],
    String(kept.map(({ count }) => count)),
  );
  for (const { buffer } of kept) await buffer.remove();

  // Each segment lasts as long as its place in the order of arrival.
  const send = (track: Track, number: number, lasts: number) => {
    const buffer = bench.recordings.openFrameBuffer(
      `${track.projectId}-${number}`,
      track.projectId,
    );
    buffer.add({ jpeg: frame('x'), at: 1_500 });
    bench.recordings.send({ track, number, buffer: buffer, until: 1_500 + lasts, isLast: false });
  };
  for (const number of [1, 2, 3, 4]) send(bench.track, number, number);
  send(second, 1, 5);
  await bench.recordings.idle();
  assert.ok(order.indexOf(5) <= 2, order.join());
  assert.equal(
    order.filter((place) => place !== 5),
    [1, 2, 3, 4],
  );
});

test('a segment past the project’s quota ends the recording with a warning', async () => {
  await using bench = openBench(() => ENCODED);
  bench.take(1, [1_500], 2_000);
  await bench.recordings.idle();
  const { blobs } = bench.track.clients;
  const full = async () => {
    throw new Fault('QUOTA_EXCEEDED', 'The quota is used up.');
  };
  bench.track.clients = { blobs: { ...blobs, writeBlob: full } };
  bench.take(2, [2_000], 3_000);
  bench.take(3, [3_000], 4_000, true);
  await bench.recordings.idle();
  assert.equal(bench.warned, ['recording has stopped: The quota is used up.']);
  assert.equal(bench.written, ['start', 'segment']);
  assert.is(bench.added.at(-1)?.complete, true);
  assert.equal(readdirSync(bench.dir), []);
});

test('the start is sent once, then segments with their times, and no buffer is left', async () => {
  const seen: { segment: Segment; times: number[][] }[] = [];
  await using bench = openBench((segment, frames) => {
    seen.push({ segment, times: frames.map(({ at, lasts }) => [at, lasts]) });
    return ENCODED;
  });
  bench.take(1, [1_500, 1_600, 2_500], 3_500);
  bench.take(2, [3_500], 4_000, true);
  await bench.recordings.idle();
  assert.equal(bench.written, ['start', 'segment', 'segment']);
  assert.equal(
    bench.added.map(({ startMs, endMs, complete, parts }) => [startMs, endMs, complete, parts]),
    [
      [
        500,
        2_500,
        false,
        [
          { number: 0, receipt: 'receipt 1', startMs: 500, endMs: 500 },
          { number: 1, receipt: 'receipt 2', startMs: 500, endMs: 2_500 },
        ],
      ],
      [500, 3_000, true, [{ number: 2, receipt: 'receipt 3', startMs: 2_500, endMs: 3_000 }]],
    ],
  );
  assert.equal(
    seen.map(({ times }) => times),
    [
      [
        [0, 100],
        [100, 900],
        [1_000, 1_000],
      ],
      [[2_000, 500]],
    ],
  );
  // even, as H.264 has it
  assert.equal([seen[0]?.segment.width, seen[0]?.segment.height], [4, 2]);
  assert.equal(readdirSync(bench.dir), []);
});

test('segments wait while the processors are overloaded, unless the runner retires', async () => {
  await using bench = openBench(() => ENCODED);
  bench.processors.areOverloaded = true;
  bench.take(1, [1_500], 2_000);
  await sleep(600);
  assert.equal(bench.written, []);
  bench.processors.areOverloaded = false;
  await bench.recordings.idle();
  assert.equal(bench.written, ['start', 'segment']);
  bench.processors.areOverloaded = true;
  bench.take(2, [2_000], 3_000, true);
  bench.recordings.retire();
  await bench.recordings.idle();
  assert.equal(bench.written, ['start', 'segment', 'segment']);
  assert.equal(readdirSync(bench.dir), []);
});

test('a failed encoding is retried once', async () => {
  let asked = 0;
  await using bench = openBench(() => {
    asked += 1;
    if (asked === 1) throw new Error('its Chrome was lost');
    return ENCODED;
  });
  bench.take(1, [1_500], 2_000, true);
  await bench.recordings.idle();
  assert.equal([asked, bench.written.length], [2, 2]);
});

test('a segment that cannot be encoded ends the recording, with a report to core', async () => {
  let asked = 0;
  await using bench = openBench(() => {
    asked += 1;
    if (asked > 1) throw new Error('broken');
    return ENCODED;
  });
  for (const number of [1, 2, 3]) bench.take(number, [number * 1_500], 9_000, number === 3);
  await bench.recordings.idle();
  assert.is(asked, 3); // the second twice, the third not at all
  assert.equal(bench.written, ['start', 'segment']);
  const last = bench.added.at(-1);
  assert.equal([last?.parts, last?.complete], [[], true]);
  assert.equal(readdirSync(bench.dir), []);
});

test('a segment of another kind does not follow the first', async () => {
  let asked = 0;
  await using bench = openBench(() => {
    asked += 1;
    return { ...ENCODED, start: Buffer.from(`start ${asked}`) };
  });
  bench.take(1, [1_500], 2_000);
  bench.take(2, [2_000], 3_000, true);
  await bench.recordings.idle();
  assert.equal(bench.written, ['start 1', 'segment']);
  assert.is(bench.added.at(-1)?.complete, true);
});

test('frames beyond the allowance are dropped, and the allowance is released', async () => {
  await using bench = openBench(() => ENCODED, 2 * frame('1500').length);
  const buffer = bench.recordings.openFrameBuffer('one', 'first');
  assert.ok(buffer.add({ jpeg: frame('1500'), at: 1_500 }));
  assert.not(buffer.add({ jpeg: frame('1600'), at: 1_600 }));
  assert.is(buffer.frames.length, 1);
  assert.ok(existsSync(join(bench.dir, 'recording-one')) || (await buffer.read(onlyOf(buffer))));
  await buffer.remove();
  const next = bench.recordings.openFrameBuffer('two', 'first');
  assert.ok(next.add({ jpeg: frame('1500'), at: 1_500 }));
  await next.remove();
  assert.equal(readdirSync(bench.dir), []);
});

test('a video ends at its size limit', async () => {
  await using bench = openBench(() => ENCODED);
  bench.track.bytes = (1 << 30) - ENCODED.segment.length;
  bench.take(1, [1_500], 2_000);
  bench.take(2, [2_000], 3_000, true);
  await bench.recordings.idle();
  assert.equal(bench.written, ['start', 'segment']);
  assert.is(bench.added.at(-1)?.complete, true);
});

test('uploads that wait delay no encoding and no other project, and keep their order', async () => {
  await using bench = openBench(() => ENCODED);
  const { blobs } = bench.track.clients;
  const away = Promise.withResolvers<void>();
  const slow: typeof blobs.writeBlob = async (...call) => {
    await away.promise;
    return await blobs.writeBlob(...call);
  };
  bench.track.clients = { blobs: { ...blobs, writeBlob: slow } };
  for (const number of [1, 2, 3]) bench.take(number, [number * 1_500], 9_000, number === 3);
  const lease = leaseOf('second', bench.added);
  const second: Track = { ...bench.track, projectId: 'second', lease, clients: { blobs } };
  const buffer = bench.recordings.openFrameBuffer('second', 'second');
  buffer.add({ jpeg: frame('x'), at: 1_500 });
  bench.recordings.send({ track: second, number: 1, buffer, until: 2_000, isLast: true });
  await until(() => bench.added.some(({ leaseId, complete }) => leaseId === 'second' && complete));
  const isWaiting = () => readdirSync(bench.dir).filter((name) => name.startsWith('segment-'));
  await until(() => isWaiting().length === 3);
  away.resolve();
  await bench.recordings.idle();
  const own = bench.added.filter(({ leaseId }) => leaseId === 'lease');
  assert.equal(
    own.map(({ parts }) => parts.map(({ number }) => number)),
    [[0, 1], [2], [3]],
  );
  assert.equal(readdirSync(bench.dir), []);
});

test('a lost lease ends its recording only', async () => {
  await using bench = openBench(() => ENCODED);
  const refuse = async () => {
    throw new Fault('LEASE_LOST', 'The lease is lost or has ended.');
  };
  Object.assign(bench.track, {
    clients: { blobs: { beginUpload: async () => ({}), writeBlob: refuse } },
    lease: { ...bench.track.lease, append: refuse },
  });
  bench.take(1, [1_500], 2_000, true);
  await bench.recordings.report(bench.track, never);
  await bench.recordings.idle();
  assert.ok(bench.track.isBroken);
  assert.equal(readdirSync(bench.dir), []);
});

test('reports wait for those of other work, unless their session or the runner ends', async () => {
  await using bench = openBench(() => ENCODED);
  const { append } = bench.track.lease;
  bench.track.lease = {
    ...bench.track.lease,
    waitOf: () => 3_600_000,
    async append(entry, how) {
      const { ms, hurry } = must(how.patience, 'its patience');
      await sleep(ms, undefined, { signal: hurry }).catch(() => undefined);
      return await append(entry, how);
    },
  };
  const [started, closing] = [bench.recordings.report(bench.track, never), new AbortController()];
  const ended = bench.recordings.report({ ...bench.track, pageId: 1 }, closing.signal);
  bench.take(1, [1_500], 2_000);
  await until(() => bench.written.length === 2);
  assert.equal(bench.added, []);
  closing.abort(); // its session ends, and waits
  await ended;
  assert.equal(
    bench.added.map(({ pageId, parts }) => [pageId, parts]),
    [[1, []]],
  );
  await bench.recordings.finish(AbortSignal.abort());
  await started;
  assert.equal(bench.added.map(({ parts }) => parts.length).toSorted(), [0, 0, 2]);
  assert.equal(readdirSync(bench.dir), []);
});

test('a segment stays on disk until core has answered its report', async () => {
  await using bench = openBench(() => ENCODED);
  const answer = Promise.withResolvers<boolean>();
  bench.track.lease = { ...bench.track.lease, append: () => answer.promise };
  bench.take(1, [1_500], 2_000);
  await until(() => bench.written.length === 2);
  assert.is(readdirSync(bench.dir).filter((name) => name.startsWith('segment-')).length, 1);
  answer.resolve(false);
  await bench.recordings.idle();
  assert.equal(readdirSync(bench.dir), []);
});

test('a report that core refuses for the quota ends the recording with a warning', async () => {
  await using bench = openBench(() => ENCODED);
  const { append } = bench.track.lease;
  bench.track.lease = {
    ...bench.track.lease,
    async append(entry, how) {
      const isOfParts = entry.kind === 'recording' && entry.recording.parts.length > 0;
      if (isOfParts) throw new Fault('QUOTA_EXCEEDED', 'The quota is used up.');
      return await append(entry, how);
    },
  };
  bench.take(1, [1_500], 2_000);
  bench.take(2, [2_000], 3_000, true);
  await bench.recordings.idle();
  assert.equal(bench.warned, ['recording has stopped: The quota is used up.']);
  assert.equal(bench.written, ['start', 'segment']);
  assert.equal(
    bench.added.map(({ parts, complete }) => [parts, complete]),
    [[[], true]],
  );
});

function onlyOf<T>({ frames }: { frames: readonly T[] }): T {
  const [one] = frames;
  if (one === undefined) throw new Error('none');
  return one;
}

test.run();
