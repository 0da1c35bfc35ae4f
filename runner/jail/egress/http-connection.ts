/**
 * One connection, read as HTTP/1.1 messages: a head, its body, the next head. Body bytes are
 * forwarded as they arrive, with back-pressure; unrequested bytes are buffered.
 */
import type { Socket } from 'node:net';
import { type Body, headEnd } from './http1.ts';

/** Ours: Chrome's limit for a response. */
const HEAD_MAX_BYTES = 256 << 10;

/** Undefined: the connection has ended. */
type Sink = (bytes: Buffer | undefined) => void;

export class HttpConnection {
  readonly socket: Socket;
  #held: Buffer | undefined;
  #sink: Sink | undefined;
  #isOver = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', this.#receive).on('end', this.#end).on('close', this.#end);
  }

  /** The connection has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Bytes have arrived that were not requested. */
  get hasMore(): boolean {
    return this.#held !== undefined;
  }

  /** The next byte, which is not consumed; undefined at the end. */
  peek(): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    this.#read((bytes) => {
      this.#stop(bytes);
      resolve(bytes?.[0]);
    });
    return promise;
  }

  /** The next `count` bytes; undefined when the connection ends before. */
  take(count: number): Promise<Buffer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    let taken = Buffer.alloc(0);
    if (count === 0) return Promise.resolve(taken);
    this.#read((bytes) => {
      if (bytes !== undefined) taken = Buffer.concat([taken, bytes]);
      if (bytes !== undefined && taken.length < count) return;
      this.#stop(bytes && taken.subarray(count));
      resolve(bytes && taken.subarray(0, count));
    });
    return promise;
  }

  /** The next head, truncated (and so invalid) when it is too long; undefined at the end. */
  head(): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const endIn = headEnd();
    let text = '';
    this.#read((bytes) => {
      const end = bytes && endIn(bytes);
      text += bytes?.toString('latin1', 0, end) ?? '';
      if (bytes !== undefined && end === undefined && text.length <= HEAD_MAX_BYTES) return;
      this.#stop(end === undefined ? undefined : bytes?.subarray(end));
      resolve(bytes && text);
    });
    return promise;
  }

  /**
   * Writes `head`, then the body as it arrives, and waits until it is flushed, so that slow readers
   * limit short messages too. False when the body is incomplete.
   */
  async pass(head: string, body: Body, to: Socket): Promise<boolean> {
    const first = this.#held;
    this.#held = undefined;
    const taken = first === undefined ? 0 : body.take(first);
    if (taken === undefined) return false;
    // one write, and so one packet, for a short message
    to.write(first === undefined || taken === 0 ? head : joined(head, first, taken), 'latin1');
    this.#hold(first?.subarray(taken));
    const isWhole = body.isOver || (await this.#passRest(body, to));
    if (to.writableLength > 0) await gone(to);
    return isWhole;
  }

  /** Detaches the reader: returns the bytes that have arrived and were not read. */
  release(): Buffer {
    const { socket } = this;
    socket.off('data', this.#receive).off('end', this.#end).off('close', this.#end);
    return this.#held ?? Buffer.alloc(0);
  }

  #passRest(body: Body, to: Socket): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const finish = (isWhole: boolean, rest?: Buffer): void => {
      this.#stop(rest);
      resolve(isWhole);
    };
    const goOn = (): void => void this.socket.resume();
    this.#read((bytes) => {
      if (bytes === undefined) return finish(body.isOpenEnded && this.socket.readableEnded);
      const taken = body.take(bytes);
      if (taken === undefined) return finish(false);
      const isFlushed = to.write(bytes.subarray(0, taken));
      if (body.isOver) finish(true, bytes.subarray(taken));
      else if (!isFlushed) {
        this.socket.pause();
        to.once('drain', goOn);
      }
    });
    return promise;
  }

  #read(sink: Sink): void {
    this.#sink = sink;
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) sink(held);
    if (this.#sink !== sink) return; // the sink is finished
    if (this.#isOver) sink(undefined);
    else this.socket.resume();
  }

  #stop(rest: Buffer | undefined): void {
    this.#sink = undefined;
    this.#hold(rest);
  }

  #hold(bytes: Buffer | undefined): void {
    if (bytes === undefined || bytes.length === 0) return;
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
  }

  readonly #receive = (bytes: Buffer): void => {
    if (this.#sink !== undefined) {
      this.#sink(bytes);
      return;
    }
    this.#hold(bytes);
    this.socket.pause();
  };

  readonly #end = (): void => {
    this.#isOver = true;
    this.#sink?.(undefined);
  };
}

/** Resolves when all written data is flushed, or the socket is closed. */
function gone(to: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  to.write('', () => resolve());
  return promise;
}

function joined(head: string, bytes: Buffer, count: number): Buffer {
  const whole = Buffer.allocUnsafe(head.length + count);
  whole.write(head, 'latin1');
  bytes.copy(whole, head.length, 0, count);
  return whole;
}
