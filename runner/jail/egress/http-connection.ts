/**
 * One connection, read as HTTP/1.1 messages: a head, its body, the next head. Bytes of a body go on
 * as they come, no faster than they are taken; what comes before somebody asks waits.
 */
import type { Socket } from 'node:net';
import { type Body, headEnd } from './http1.ts';

/** Ours: as much as Chrome takes of an answer. */
const HEAD_MAX_BYTES = 256 << 10;

/** Undefined: nothing more comes. */
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

  /** Nothing more comes. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Something has come for which nobody asked. */
  get hasMore(): boolean {
    return this.#held !== undefined;
  }

  /** The next byte, which stays to be read; undefined when there is none. */
  peek(): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    this.#read((bytes) => {
      this.#stop(bytes);
      resolve(bytes?.[0]);
    });
    return promise;
  }

  /** The next bytes, so many; undefined when there are less. */
  take(count: number): Promise<Buffer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    let taken = Buffer.alloc(0);
    if (count === 0) resolve(taken);
    else
      this.#read((bytes) => {
        if (bytes !== undefined) taken = Buffer.concat([taken, bytes]);
        if (bytes !== undefined && taken.length < count) return;
        this.#stop(bytes && taken.subarray(count));
        resolve(bytes && taken.subarray(0, count));
      });
    return promise;
  }

  /**
   * The next head; undefined when there is none. Of one that is too long the beginning, which is no
   * message.
   */
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
   * Writes `head`, then the body as it comes, and waits until it has gone: who does not read is not
   * filled with short messages either. False when the body does not come whole.
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

  /** Somebody else reads it from now on: gives what has come and was not read. */
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
      if (bytes === undefined) {
        finish(body.isOpenEnded && this.socket.readableEnded);
        return;
      }
      const taken = body.take(bytes);
      if (taken === undefined) {
        finish(false);
        return;
      }
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
    if (this.#sink !== sink) return; // it had enough
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

/** All that was written there has gone, or never will. */
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
