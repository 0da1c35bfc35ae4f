/** The upload of segments to core, with an encoder controlled by the test. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Segment } from '../../../../runner/sessions/recording/encoder.ts';
import type { Track } from '../../../../runner/sessions/recording/uploader.ts';
import { ENCODED, frame, openBench } from './encoder-bench.ts';

const test = suite('runner/sessions/recording/uploader');

test('projects take turns at the encoder, and each keeps a share of the buffers', async () => {
  const order: number[] = [];
  await using bench = openBench((_, frames) => {
    order.push(frames[0]?.lasts ?? 0);
    return ENCODED;
  }, 640);
  const second: Track = { ...bench.track, projectId: 'second', leaseId: 'second' };
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
  const { blobs, runners } = bench.track.clients;
  const full = async () => {
    throw new Fault('QUOTA_EXCEEDED', 'The quota is used up.');
  };
  bench.track.clients = { runners, blobs: { ...blobs, writeBlob: full } };
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
    bench.added.map(({ number, startMs, endMs, complete }) => [number, startMs, endMs, complete]),
    [
      [0, 500, 500, false],
      [1, 500, 2_500, false],
      [2, 2_500, 3_000, true],
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
  assert.equal([last?.number, last?.blobId, last?.complete], [0, undefined, true]);
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

test('a lost lease ends its recording only', async () => {
  await using bench = openBench(() => ENCODED);
  const refuse = async () => {
    throw new Fault('LEASE_LOST', 'The lease is lost or has ended.');
  };
  Object.assign(bench.track, {
    clients: { blobs: { writeBlob: refuse }, runners: { addRecording: refuse } },
  });
  bench.take(1, [1_500], 2_000, true);
  await bench.recordings.report(bench.track);
  await bench.recordings.idle();
  assert.ok(bench.track.isBroken);
  assert.equal(readdirSync(bench.dir), []);
});

function onlyOf<T>({ frames }: { frames: readonly T[] }): T {
  const [one] = frames;
  if (one === undefined) throw new Error('none');
  return one;
}

test.run();
