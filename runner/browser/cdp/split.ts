/**
 * Messages of Chrome's debugging pipe: NULs stand between them, and the session that one belongs to
 * stands at its end. Pure.
 */

export const NUL = 0;
/** `,"sessionId":"` + 32 hex digits + `"}` */
export const TAIL_BYTES = 48;
const TAIL = /^,"sessionId":"([0-9A-F]{32})"\}$/;
/** Of one message of Chrome's. Ours: a page returns what it likes, and this process holds it. */
export const MESSAGE_MAX_BYTES = 128 << 20;

/** The session that a message belongs to; undefined for the browser's own. */
export function cdpSessionOf(raw: Buffer): string | undefined {
  if (raw.length < TAIL_BYTES) return undefined;
  return TAIL.exec(raw.toString('latin1', raw.length - TAIL_BYTES))?.[1];
}

/**
 * Cuts a stream of bytes at NULs; gives whether the last message is whole. The parts of a long one
 * are joined once, when its end has come. Of one that is too long nothing is kept: `skip` gets its
 * last bytes when it is over.
 */
export function splitter(
  receive: (message: Buffer) => void,
  { skip, maxBytes = MESSAGE_MAX_BYTES }: { skip(tail: Buffer): void; maxBytes?: number },
): (bytes: Buffer) => boolean {
  let parts: Buffer[] = [];
  let held = 0; // bytes of the message that has begun
  const keep = (bytes: Buffer): void => {
    parts.push(bytes);
    held += bytes.length;
    if (held > maxBytes)
      parts = [Buffer.from(joined(parts.slice(-TAIL_BYTES)).subarray(-TAIL_BYTES))];
  };
  return (bytes) => {
    let start = 0;
    for (let end = bytes.indexOf(NUL); end !== -1; end = bytes.indexOf(NUL, start)) {
      keep(bytes.subarray(start, end));
      const message = joined(parts);
      const isTooLong = held > maxBytes;
      parts = [];
      held = 0;
      start = end + 1;
      if (isTooLong) skip(message);
      else receive(message);
    }
    if (start < bytes.length) keep(bytes.subarray(start));
    return held === 0;
  };
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only] = parts;
  return only !== undefined && parts.length === 1 ? only : Buffer.concat(parts);
}
