/**
 * Splits the stream of Chrome's debugging pipe into messages. Messages are separated by NUL, and
 * the CDP session id of a message is at its end. Pure.
 */

export const NUL = 0;
/** `,"sessionId":"` + 32 hex digits + `"}` */
export const TAIL_BYTES = 48;
/** The tail of a message of a session. */
export const TAIL = /^,"sessionId":"([0-9A-F]{32})"\}$/;
/**
 * Of one message from Chrome. Ours: a page controls the size of results, and this process buffers
 * them.
 */
export const MESSAGE_MAX_BYTES = 128 << 20;

/** Whether a message begins with these bytes. */
export function startsWith(raw: Buffer, head: Buffer): boolean {
  return raw.length >= head.length && raw.compare(head, 0, head.length, 0, head.length) === 0;
}

/** The session id of a message; undefined for the browser's own. */
export function cdpSessionOf(raw: Buffer): string | undefined {
  if (raw.length < TAIL_BYTES) return undefined;
  return TAIL.exec(raw.toString('latin1', raw.length - TAIL_BYTES))?.[1];
}

/**
 * Splits a stream of bytes at NULs; returns whether the last message is complete. The chunks of a
 * long message are joined once, at its end. A message that is too long is dropped; `skip` gets its
 * last bytes.
 */
export function splitter(
  receive: (message: Buffer) => void,
  { skip, maxBytes = MESSAGE_MAX_BYTES }: { skip(tail: Buffer): void; maxBytes?: number },
): (bytes: Buffer) => boolean {
  let parts: Buffer[] = [];
  let held = 0; // bytes of the incomplete message
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
