/** Segments on their way to core, with an encoder that does what the test says. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../proto/errors.ts';
import type { AddRecordingRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { Encoded, Encoder, Segment, TimedFrame } from '../../runner/chrome/encoder.ts';
import { openRecordings, type Recipient, type Track } from '../../runner/recordings.ts';
import { openAllowance } from '../../runner/spool.ts';
import { tempDirectory } from '../support/temp.ts';
import { log } from './chrome/lab.ts';

const test = suite('runner/recordings');

/** As much of a JPEG of 5 by 3 as is looked at, with something of its own. */
const picture = (own: string): Buffer =>
  Buffer.concat([
    Buffer.from([0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 3, 0, 5, 1, 1, 0x11, 0]),
    Buffer.from(own),
  ]);

type Encode = (segment: Segment, frames: TimedFrame[]) => Encoded;
const ENCODED = { start: Buffer.from('start'), segment: Buffer.from('segment') };

function openBench(encode: Encode, allowanceBytes?: number) {
  const dir = tempDirectory();
  const added: AddRecordingRequest[] = [];
  const written: string[] = [];
  const clients = {
    blobs: {
      async writeBlob(parts: AsyncIterable<{ part?: { $case: string; value: unknown } }>) {
        let text = '';
        for await (const { part } of parts) if (part?.$case === 'chunk') text += String(part.value);
        written.push(text);
        return { blobId: `blob ${written.length}`, size: text.length, sha256: '' };
      },
    },
    runners: {
      async addRecording(request: AddRecordingRequest) {
        added.push(request);
        return {};
      },
    },
  } as unknown as Recipient['clients'];
  const encoder: Encoder = {
    async encode(segment) {
      const frames = [];
      for await (const frame of segment.frames) frames.push(frame);
      return encode(segment, frames);
    },
    async [Symbol.asyncDispose]() {},
  };
  const allowance =
    allowanceBytes === undefined ? {} : { allowance: openAllowance(allowanceBytes) };
  const recordings = openRecordings({ encoder, runDir: dir.path, log, ...allowance });
  const to = { clients, call: {}, leaseId: 'lease' };
  const track: Track = {
    ...{ ...to, pageId: 0, url: 'https://a.test/', sessionAt: 1_000, startAt: 1_500 },
    bytes: 0,
    isBroken: false,
  };
  const take = (number: number, times: number[], until: number, isLast = false) => {
    const spool = recordings.openSpool(`lease-0-${number}`);
    for (const at of times) assert.ok(spool.add({ jpeg: picture(String(at)), at }));
    recordings.send({ track, number, spool, until, isLast });
  };
  return {
    ...{ added, written, recordings, track, take, dir: dir.path },
    async [Symbol.asyncDispose]() {
      await recordings[Symbol.asyncDispose]();
      await dir[Symbol.asyncDispose]();
    },
  };
}

test('a start comes once, segments after it with their times, and no spool is left', async () => {
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

test('an encoder that failed once is asked again', async () => {
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

test('what cannot be made ends it there: core hears of it, and nothing follows', async () => {
  let asked = 0;
  await using bench = openBench(() => {
    asked += 1;
    if (asked > 1) throw new Error('broken');
    return ENCODED;
  });
  for (const number of [1, 2, 3]) bench.take(number, [number * 1_500], 9_000, number === 3);
  await bench.recordings.idle();
  assert.is(asked, 3); // the second twice, the third never
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

test('pictures beyond the allowance are left out, and what was used is given back', async () => {
  await using bench = openBench(() => ENCODED, picture('1500').length);
  const spool = bench.recordings.openSpool('one');
  assert.ok(spool.add({ jpeg: picture('1500'), at: 1_500 }));
  assert.not(spool.add({ jpeg: picture('1600'), at: 1_600 }));
  assert.is(spool.pictures.length, 1);
  assert.ok(existsSync(join(bench.dir, 'recording-one')) || (await spool.read(onlyOf(spool))));
  await spool.remove();
  const next = bench.recordings.openSpool('two');
  assert.ok(next.add({ jpeg: picture('1500'), at: 1_500 }));
  await next.remove();
  assert.equal(readdirSync(bench.dir), []);
});

test('a video that is long enough ends there', async () => {
  await using bench = openBench(() => ENCODED);
  bench.track.bytes = (1 << 30) - ENCODED.segment.length;
  bench.take(1, [1_500], 2_000);
  bench.take(2, [2_000], 3_000, true);
  await bench.recordings.idle();
  assert.equal(bench.written, ['start', 'segment']);
  assert.is(bench.added.at(-1)?.complete, true);
});

test('a lease that is lost ends nothing but its recording', async () => {
  await using bench = openBench(() => ENCODED);
  const refuse = async () => {
    throw new Fault('LEASE_LOST', 'The lease is lost or has ended.');
  };
  Object.assign(bench.track, {
    clients: { blobs: { writeBlob: refuse }, runners: { addRecording: refuse } },
  });
  bench.take(1, [1_500], 2_000, true);
  await bench.recordings.tell(bench.track, { startMs: 0, endMs: 0, complete: false });
  await bench.recordings.idle();
  assert.ok(bench.track.isBroken);
  assert.equal(readdirSync(bench.dir), []);
});

function onlyOf<T>({ pictures }: { pictures: readonly T[] }): T {
  const [one] = pictures;
  if (one === undefined) throw new Error('none');
  return one;
}

test.run();
