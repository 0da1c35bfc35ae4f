/**
 * Encodes messages as WebSocket frames of a server: text, unfragmented, neither masked nor
 * compressed (RFC 6455 5.2). Messages of one turn of the event loop become one buffer, which costs
 * less than the list of heads and bodies that ws would write. Pure.
 */

/** FIN and the opcode of text. */
const TEXT = 0x81;
const SHORT_MAX = 125;
const MIDDLE_MAX = 0xffff;

/** Encodes all messages one after another into one buffer. */
export function framed(messages: readonly Buffer[]): Buffer {
  const size = messages.reduce((sum, { length }) => sum + headSize(length) + length, 0);
  const frames = Buffer.allocUnsafe(size);
  let at = 0;
  for (const message of messages) {
    at = writeHead(frames, at, message.length);
    at += message.copy(frames, at);
  }
  return frames;
}

/** The frame head for a message of that length; used for messages too long to copy. */
export function frameHead(length: number): Buffer {
  const head = Buffer.allocUnsafe(headSize(length));
  writeHead(head, 0, length);
  return head;
}

function headSize(length: number): number {
  if (length <= SHORT_MAX) return 2;
  return length <= MIDDLE_MAX ? 4 : 10;
}

/** Returns the offset of the message. */
function writeHead(frames: Buffer, at: number, length: number): number {
  frames[at] = TEXT;
  if (length <= SHORT_MAX) {
    frames[at + 1] = length;
    return at + 2;
  }
  if (length <= MIDDLE_MAX) {
    frames[at + 1] = 126;
    return frames.writeUInt16BE(length, at + 2);
  }
  frames[at + 1] = 127;
  return frames.writeBigUInt64BE(BigInt(length), at + 2);
}
