/**
 * The messages to one resumable client that it has not acknowledged, numbered by counting from 1.
 * Pure, except for its state.
 */

/** Ours: of a message beside its bytes, as each has a buffer of its own. */
const OVERHEAD_BYTES = 256;
/**
 * Shorter messages are copied: they are parts of the chunks that were read from Chrome, and one
 * would keep a whole chunk. Longer messages than a chunk have a buffer of their own.
 */
const COPIED_MAX_BYTES = 64 << 10;

export class ReplayBuffer {
  #messages: Buffer[] = [];
  #acknowledged = 0;
  #bytes = 0;

  /** The number of the last message. */
  get sent(): number {
    return this.#acknowledged + this.#messages.length;
  }

  /** Memory of the messages in it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** In order; the first one follows the acknowledged ones. */
  get messages(): readonly Buffer[] {
    return this.#messages;
  }

  /** Adds the next message; returns it as it is kept. */
  add(message: Buffer): Buffer {
    const kept = message.length > COPIED_MAX_BYTES ? message : copied(message);
    this.#messages.push(kept);
    this.#bytes += costOf(kept);
    return kept;
  }

  /** Whether a client that has received so many can receive all further ones. */
  canContinueAfter(received: number): boolean {
    return received >= this.#acknowledged && received <= this.sent;
  }

  /** Drops what the client has received; an earlier number changes nothing. */
  acknowledge(received: number): void {
    const dropped = this.#messages.splice(0, Math.max(0, received - this.#acknowledged));
    this.#acknowledged += dropped.length;
    for (const message of dropped) this.#bytes -= costOf(message);
  }
}

function costOf({ length }: Buffer): number {
  return length + OVERHEAD_BYTES;
}

/** Not of the shared pool, of which one message would keep 8 KiB. */
function copied(message: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(message.length);
  message.copy(copy);
  return copy;
}
