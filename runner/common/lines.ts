/**
 * Reads a jail's stream by lines or bytes on demand; unread bytes wait in the jail. A line has a
 * limit, so that an endless line takes no memory.
 */
import type { Readable } from 'node:stream';

const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

export class Lines {
  readonly #chunks: AsyncIterator<Buffer> | undefined;
  readonly #maxBytes: number;
  #held: Buffer = NOTHING;

  constructor(stream: Readable | null, maxBytes: number) {
    this.#chunks = stream?.[Symbol.asyncIterator]();
    this.#maxBytes = maxBytes;
  }

  /** The next line; undefined at the end. Throws when the line is too long. */
  async next(): Promise<string | undefined> {
    const parts: Buffer[] = [];
    for (let bytes = 0; ; ) {
      const end = this.#held.indexOf(NEWLINE);
      const part = end < 0 ? this.#held : this.#held.subarray(0, end);
      bytes += part.length;
      if (bytes > this.#maxBytes) throw new Error(`a line has more than ${this.#maxBytes} bytes`);
      parts.push(part);
      this.#held = end < 0 ? NOTHING : this.#held.subarray(end + 1);
      if (end >= 0) return Buffer.concat(parts).toString('utf8');
      if (!(await this.#more())) return undefined;
    }
  }

  /** Passes the next `count` bytes to `take`. False when the stream ends before. */
  async copy(count: number, take: (chunk: Buffer) => Promise<void>): Promise<boolean> {
    for (let left = count; left > 0; ) {
      if (this.#held.length === 0 && !(await this.#more())) return false;
      const chunk = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(chunk.length);
      left -= chunk.length;
      await take(chunk);
    }
    return true;
  }

  async #more(): Promise<boolean> {
    const { done, value } = (await this.#chunks?.next()) ?? { done: true, value: undefined };
    if (done === true || value === undefined) return false;
    this.#held = value;
    return true;
  }
}
