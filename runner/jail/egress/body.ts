/**
 * Where the body of an HTTP/1.1 message ends (RFC 9112 6 and 7.1), told from its bytes as they
 * pass: nothing of it is kept. Pure.
 */

export type Body = {
  /** How many of these bytes are of the body; undefined for what is no body. */
  take(bytes: Uint8Array): number | undefined;
  /** All of it has passed. */
  readonly isOver: boolean;
  /** The end of the connection is its end. */
  readonly isOpenEnded: boolean;
};

export const NO_BODY: Body = { take: () => 0, isOver: true, isOpenEnded: false };

/** Of an answer that does not say how long it is. */
export const OPEN_ENDED: Body = {
  take: ({ length }) => length,
  isOver: false,
  isOpenEnded: true,
};

/** Hex digits of a chunk's size. Ours: a number still holds what they say. */
const SIZE_DIGITS_MAX = 13;
const [TAB, LF, CR, SPACE, DELETE] = [9, 10, 13, 32, 127];

export function sizedBody(size: number): Body {
  let left = size;
  return {
    take({ length }) {
      const taken = Math.min(left, length);
      left -= taken;
      return taken;
    },
    get isOver() {
      return left === 0;
    },
    isOpenEnded: false,
  };
}

/**
 * size [extension] CRLF, bytes CRLF; ...; 0 CRLF, trailers, CRLF. Every line ends with CR and LF
 * together: where one reader takes a lone LF for an end and the next does not, a request can be
 * hidden in a body.
 */
export function chunkedBody(): Body {
  return new ChunkedBody();
}

type Part = 'size' | 'extension' | 'size LF' | 'CR' | 'LF' | 'line' | 'in line' | 'line LF' | 'end';

class ChunkedBody implements Body {
  readonly isOpenEnded = false;
  #part: Part | 'over' = 'size';
  #size = 0;
  #digits = 0;
  #left = 0;

  get isOver(): boolean {
    return this.#part === 'over';
  }

  take(bytes: Uint8Array): number | undefined {
    let at = 0;
    while (at < bytes.length && this.#part !== 'over') {
      const taken = Math.min(this.#left, bytes.length - at);
      this.#left -= taken;
      at += taken;
      if (taken > 0) continue;
      const next = this.#after(this.#part, bytes[at] ?? 0);
      if (next === undefined) return undefined;
      this.#part = next;
      at += 1;
    }
    return at;
  }

  /** What comes after that byte in that part; undefined when it may not stand there. */
  #after(part: Part, byte: number): Part | 'over' | undefined {
    switch (part) {
      case 'size':
        return this.#inSize(byte);
      case 'extension':
        if (byte === CR) return 'size LF';
        return isText(byte) ? 'extension' : undefined;
      case 'size LF':
        return byte === LF ? this.#begin() : undefined;
      case 'CR':
        return byte === CR ? 'LF' : undefined;
      case 'LF':
        return byte === LF ? 'size' : undefined;
      case 'line':
        if (byte === CR) return 'end';
        return isText(byte) ? 'in line' : undefined;
      case 'in line':
        if (byte === CR) return 'line LF';
        return isText(byte) ? 'in line' : undefined;
      case 'line LF':
        return byte === LF ? 'line' : undefined;
      case 'end':
        return byte === LF ? 'over' : undefined;
    }
  }

  #inSize(byte: number): Part | undefined {
    const digit = Number.parseInt(String.fromCharCode(byte), 16);
    if (!Number.isNaN(digit)) {
      this.#digits += 1;
      this.#size = this.#size * 16 + digit;
      return this.#digits > SIZE_DIGITS_MAX ? undefined : 'size';
    }
    if (this.#digits === 0) return undefined;
    if (byte === CR) return 'size LF';
    return byte === SPACE || byte === TAB || byte === 0x3b ? 'extension' : undefined;
  }

  #begin(): Part {
    const isLast = this.#size === 0;
    this.#left = this.#size;
    this.#size = 0;
    this.#digits = 0;
    return isLast ? 'line' : 'CR';
  }
}

function isText(byte: number): boolean {
  return byte === TAB || (byte >= SPACE && byte !== DELETE);
}
