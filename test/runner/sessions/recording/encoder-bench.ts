/** Recordings with an encoder controlled by the test, and a core that records its calls. */
import * as assert from 'uvu/assert';
import type { PageRecording } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { openShares } from '../../../../proto/sharing/shares.ts';
import type {
  Encoded,
  Encoder,
  Segment,
  TimedFrame,
} from '../../../../runner/sessions/recording/encoder.ts';
import {
  openRecordings,
  type Recipient,
  type Track,
} from '../../../../runner/sessions/recording/uploader.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { log } from '../../browser/lab.ts';

/** As much of a JPEG of 5 by 3 as is looked at, with something of its own. */
export const frame = (own: string): Buffer =>
  Buffer.concat([
    Buffer.from([0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 3, 0, 5, 1, 1, 0x11, 0]),
    Buffer.from(own),
  ]);

type Encode = (segment: Segment, frames: TimedFrame[]) => Encoded;
export const ENCODED = { start: Buffer.from('start'), segment: Buffer.from('segment') };

/** A lease of a runner without other work. `added`: what core has stored. */
export function leaseOf(id: string, added: PageRecording[]): Track['lease'] {
  const append: Track['lease']['append'] = async (entry, { signal }) => {
    signal.throwIfAborted();
    if (entry.kind === 'recording') added.push(entry.recording);
    return false;
  };
  return { id, call: {}, append, waitOf: () => 0 };
}

export function openBench(encode: Encode, allowanceBytes?: number) {
  const dir = tempDirectory();
  const added: PageRecording[] = [];
  const written: string[] = [];
  const warned: string[] = [];
  const clients = {
    blobs: {
      beginUpload: async () => ({}),
      async writeBlob(parts: AsyncIterable<{ part?: { $case: string; value: unknown } }>) {
        let text = '';
        for await (const { part } of parts) if (part?.$case === 'chunk') text += String(part.value);
        written.push(text);
        const receipt = `receipt ${written.length}`;
        return { blobId: 'blob', size: text.length, sha256: '', receipt };
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
  const allowance = allowanceBytes === undefined ? {} : { allowance: openShares(allowanceBytes) };
  const processors = { areOverloaded: false };
  const isOverloaded = (): boolean => processors.areOverloaded;
  const from = { encoder, runDir: dir.path, log, isOverloaded };
  const recordings = openRecordings({ ...from, ...allowance });
  const to = { clients, lease: leaseOf('lease', added), sessionId: 'session' };
  const track: Track = {
    ...to,
    projectId: 'first',
    pageId: 0,
    url: 'https://a.test/',
    sessionAt: 1_000,
    startAt: 1_500,
    bytes: 0,
    isBroken: false,
    warn: (message) => void warned.push(message),
  };
  const take = (number: number, times: number[], until: number, isLast = false) => {
    const buffer = recordings.openFrameBuffer(`lease-0-${number}`, 'first');
    for (const at of times) assert.ok(buffer.add({ jpeg: frame(String(at)), at }));
    recordings.send({ track, number, buffer: buffer, until, isLast });
  };
  return {
    added,
    written,
    warned,
    processors,
    recordings,
    track,
    take,
    dir: dir.path,
    async [Symbol.asyncDispose]() {
      await recordings[Symbol.asyncDispose]();
      await dir[Symbol.asyncDispose]();
    },
  };
}
