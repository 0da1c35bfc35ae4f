import * as fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import * as ws from 'ws';
import { followFrames, RUNNER_LOST } from '../../../gateway/http/close-frames.ts';

const test = suite('gateway/http/close-frames');
const ANSWER = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\r\n');

/** `Sender` has no types. */
const { Sender } = ws as unknown as {
  Sender: { frame(data: Buffer, options: object): Buffer[] };
};

type Frame = { opcode: number; length: number };

/** As ws writes it. */
function encoded({ opcode, length }: Frame): Buffer {
  const options = { fin: true, opcode, mask: false, readOnly: true, rsv1: false };
  return Buffer.concat(Sender.frame(Buffer.alloc(length, RUNNER_LOST), options));
}

/** Reads the bytes in parts of these sizes, one after another. */
function readIn(sizes: readonly number[], bytes: Buffer) {
  const frames = followFrames();
  let at = 0;
  for (const size of sizes) {
    frames.read(bytes.subarray(at, at + size));
    at += size;
  }
  frames.read(bytes.subarray(at));
  return frames;
}

const lengths = fc.oneof(fc.nat(130), fc.constantFrom(65_535, 65_536), fc.nat(70_000));
const texts = fc.record({ opcode: fc.constantFrom(1, 2, 9), length: lengths });
const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(2_000)));

test('a close frame fits behind whole frames only, however their bytes arrive', () => {
  const property = fc.property(fc.array(texts), sizes, fc.nat(), (all, parts, cut) => {
    const bytes = Buffer.concat([ANSWER, ...all.map(encoded)]);
    assert.is(readIn(parts, bytes).takesClose, true);
    const ends = [0, ...all].map((_, n) => {
      return Buffer.concat([ANSWER, ...all.slice(0, n).map(encoded)]).length;
    });
    const kept = cut % bytes.length;
    assert.is(readIn(parts, bytes.subarray(0, kept)).takesClose, ends.includes(kept));
  });
  void fc.assert(property, { numRuns: 200 });
});

test('a second close frame never follows, nor one behind a refusal', () => {
  for (const first of [0, 5]) {
    const frames = [encoded({ opcode: 1, length: first }), encoded({ opcode: 8, length: 20 })];
    assert.is(readIn([], Buffer.concat([ANSWER, ...frames])).takesClose, false);
  }
  for (const answer of ['HTTP/1.1 410 Gone\r\n\r\n{}', 'x'.repeat(100_000)]) {
    assert.is(readIn([7], Buffer.from(answer)).takesClose, false);
  }
});

test.run();
