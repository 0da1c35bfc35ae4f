/**
 * Parses the HTTP/1.1 messages in one direction of a forwarded connection. Written by hand: Node's
 * parser is available only inside its server and its client, which send bytes of their own.
 */

/** In bytes. Node's own limit is 16 KiB, for a whole head. A longer line is not HTTP. */
const LINE_MAX = 64 << 10;
const NONE = Buffer.alloc(0);

export type Head = { start: string; headers: ReadonlyMap<string, string> };
/**
 * The end of the body after a head: after this many bytes, by chunks, or with the connection. After
 * `over` the bytes are not HTTP, or are not read.
 */
export type Framing = number | 'chunked' | 'close' | 'over';

export type Listener = {
  head(head: Head): Framing;
  body(part: Buffer): void;
  /** The message is complete. */
  whole(): void;
};
export type Reader = {
  push(chunk: Buffer): void;
  /** The direction has ended. */
  end(): void;
};

type Place = 'head' | 'size' | 'chunk' | 'after' | 'trailers' | 'sized' | 'close' | 'over';

export function readMessages(listener: Listener): Reader {
  let unread: Buffer = NONE;
  let place: Place = 'head';
  let lines: string[] = [];
  let left = 0;

  const isOver = () => place === 'over';

  function go(to: Place): true {
    place = to;
    if (to === 'head') listener.whole();
    return true;
  }

  /** Undefined until the line is complete. */
  function line(): string | undefined {
    const at = unread.indexOf('\n');
    if (at === -1 || at > LINE_MAX) {
      if (unread.length > LINE_MAX) go('over');
      return undefined;
    }
    const text = unread.toString('latin1', 0, at).replace(/\r$/, '');
    unread = unread.subarray(at + 1);
    return text;
  }

  /** Reads a part of a body, at most `left` bytes; returns whether the body is complete. */
  function part(): boolean {
    const taken = unread.subarray(0, left);
    unread = unread.subarray(taken.length);
    left -= taken.length;
    if (taken.length > 0) listener.body(taken);
    return left === 0;
  }

  function headLine(text: string): true {
    if (text !== '') {
      lines.push(text);
      return true;
    }
    if (lines.length === 0) return true; // an empty line before a head is allowed (RFC 9112, 2.2)
    const framing = listener.head(headOf(lines));
    lines = [];
    if (typeof framing !== 'number') return go(framing === 'chunked' ? 'size' : framing);
    left = framing;
    return go(left === 0 ? 'head' : 'sized');
  }

  function sizeLine(text: string): true {
    left = Number.parseInt(text, 16);
    if (Number.isNaN(left)) return go('over');
    return go(left === 0 ? 'trailers' : 'chunk');
  }

  /** Whether there may be more to read. */
  function step(): boolean {
    if (isOver()) return false;
    if (place === 'close') {
      left = unread.length;
      part();
      return false;
    }
    if (place === 'sized') return part() && go('head');
    if (place === 'chunk') return part() && go('after');
    const text = line();
    if (text === undefined) return false;
    if (place === 'head') return headLine(text);
    if (place === 'size') return sizeLine(text);
    if (place === 'after') return go('size');
    return text === '' ? go('head') : true; // trailers do not affect the body
  }

  return {
    push(chunk) {
      unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
      while (step());
      if (isOver()) unread = NONE;
    },
    end() {
      if (place === 'close') listener.whole();
      place = 'over';
    },
  };
}

function headOf([start = '', ...fields]: readonly string[]): Head {
  const headers = fields.map((field): [string, string] => {
    const colon = field.indexOf(':');
    return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
  });
  return { start, headers: new Map(headers) };
}
