/** Recordings with an encoder controlled by the test, and a core that records its calls. */
import * as assert from 'uvu/assert';
import type { AddRecordingRequest } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
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

export function openBench(encode: Encode, allowanceBytes?: number) {
  const dir = tempDirectory();
  const added: AddRecordingRequest[] = [];
  const written: string[] = [];
  const warned: string[] = [];
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
  const allowance = allowanceBytes === undefined ? {} : { allowance: openShares(allowanceBytes) };
  const recordings = openRecordings({ encoder, runDir: dir.path, log, ...allowance });
  const to = { clients, call: {}, leaseId: 'lease' };
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
