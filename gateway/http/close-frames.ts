/**
 * The close frame of a WebSocket whose runner has ended without one. Its clients would hear 1006,
 * which says nothing. RFC 6455 5.2 and 5.5.1.
 */
import { END_REASONS } from '../../proto/sessions/end-reasons.ts';

/** FIN and the opcode of a close. */
const CLOSE = 0x88;
const OPCODE = 0x0f;
const LENGTH = 0x7f;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const HEAD_END = '\r\n\r\n';
/** Ours: a session server's answer has some 200 bytes. */
const HEAD_MAX_BYTES = 16 << 10;
/** RFC 6455 7.4.1. */
const GOING_AWAY = 1001;
const UNEXPECTED = 1011;

export const RUNNER_LOST = closeFrame(UNEXPECTED, END_REASONS.runnerLost);
export const GATEWAY_ENDS = closeFrame(GOING_AWAY, 'the gateway is ending');

/** `reason` has at most 123 bytes. */
function closeFrame(code: number, reason: string): Buffer {
  const head = Buffer.from([CLOSE, 2 + Buffer.byteLength(reason), code >> 8, code & 0xff]);
  return Buffer.concat([head, Buffer.from(reason)]);
}

export type SentFrames = {
  /** The next bytes that a session server has sent. */
  read(bytes: Buffer): void;
  /** Whether the upgrade was answered, the last frame is whole, and it was no close. */
  readonly takesClose: boolean;
};

/** Follows the answer to an upgrade and the frames behind it, without their payloads. */
export function followFrames(): SentFrames {
  let answer: string | undefined = '';
  let hasClosed = false;
  /** Bytes of the payload that are to come. */
  let left = 0;
  /** The bytes of a head that has not arrived whole. */
  let head: Buffer = Buffer.alloc(0);

  const readFrames = (bytes: Buffer): void => {
    let at = 0;
    while (at < bytes.length && !hasClosed) {
      const skipped = Math.min(left, bytes.length - at);
      left -= skipped;
      at += skipped;
      if (at === bytes.length) return;
      const length = payloadAt(bytes, at);
      if (length === undefined) {
        head = bytes.subarray(at);
        return;
      }
      hasClosed = ((bytes[at] ?? 0) & OPCODE) === (CLOSE & OPCODE);
      at += headSize(bytes, at);
      left = length;
    }
  };
  /** Returns the bytes behind the answer. */
  const readAnswer = (bytes: Buffer): Buffer => {
    const before = answer?.length ?? 0;
    answer += bytes.toString('latin1');
    const end = answer?.indexOf(HEAD_END, Math.max(0, before - HEAD_END.length)) ?? -1;
    if (end === -1) {
      hasClosed = (answer?.length ?? 0) > HEAD_MAX_BYTES;
      return Buffer.alloc(0);
    }
    hasClosed = !answer?.startsWith('HTTP/1.1 101 ');
    answer = undefined;
    return bytes.subarray(end + HEAD_END.length - before);
  };

  return {
    read(bytes) {
      if (hasClosed) return;
      const frames = answer === undefined ? bytes : readAnswer(bytes);
      const whole = head.length === 0 ? frames : Buffer.concat([head, frames]);
      head = Buffer.alloc(0);
      readFrames(whole);
    },
    get takesClose() {
      return answer === undefined && !hasClosed && left === 0 && head.length === 0;
    },
  };
}

function headSize(bytes: Buffer, at: number): number {
  const length = (bytes[at + 1] ?? 0) & LENGTH; // a server does not mask
  if (length === LENGTH_64) return 10;
  return length === LENGTH_16 ? 4 : 2;
}

/** The length of the payload; undefined when the head is not whole. */
function payloadAt(bytes: Buffer, at: number): number | undefined {
  if (bytes.length - at < 2 || bytes.length - at < headSize(bytes, at)) return undefined;
  const length = (bytes[at + 1] ?? 0) & LENGTH;
  if (length === LENGTH_16) return bytes.readUInt16BE(at + 2);
  return length === LENGTH_64 ? Number(bytes.readBigUInt64BE(at + 2)) : length;
}
