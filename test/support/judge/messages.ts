/**
 * HTTP/1.1 messages in the bytes of one direction of a connection, for who listens along. By hand:
 * Node lends its parser only to who serves or asks, and such a one sends bytes of its own.
 */

/** In bytes: Node's own limit is 16 KiB, for all of a head. A longer line is no HTTP. */
const LINE_MAX = 64 << 10;
const NONE = Buffer.alloc(0);

export type Head = { start: string; headers: ReadonlyMap<string, string> };
/**
 * How the body after a head ends: after so many bytes, by its chunks, with the connection; or
 * `over`: what follows is no HTTP, or nobody reads it.
 */
export type Framing = number | 'chunked' | 'close' | 'over';

export type Listener = {
  head(head: Head): Framing;
  body(part: Buffer): void;
  /** The message is whole. */
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

  /** Undefined when it is not there yet. */
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

  /** Of a body, up to `left`; whether that is all of it. */
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
    return text === '' ? go('head') : true; // a trailer says nothing of the body
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
