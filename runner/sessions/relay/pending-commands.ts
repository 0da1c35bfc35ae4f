/**
 * Commands of one client that Chrome has not answered. Clients reuse each other's ids, and Chrome
 * responds to a command whose session has ended with the id alone. So each command is sent to
 * Chrome with a unique id (Pipe.newId), and its response gets the client's id back.
 */

/**
 * Ours: a page that hangs answers nothing, and a driver may send commands for each of thousands of
 * elements at once. An entry takes about 80 bytes.
 */
export const PENDING_MAX = 50_000;
/**
 * Entries removed at once when there are too many. Ours: deleting the first entry of a Map for each
 * one added costs 40 us an entry, because finding the first passes all deleted ones.
 */
const ROOM = 1_000;
/** `{"id":`, with which a response begins. */
const ID_AT = 6;
/** Length of every id that Pipe.newId returns. A client's id is never longer. */
export const ID_CHARS = 11;
/** The i of `id`: an event begins with `{"method":`. */
const LETTER_I = 0x69;
const COMMA = 0x2c;

/** `id`: the client's own; `navigatesTo`: the host, of a Page.navigate. */
export type PendingCommand<Session> = {
  id: number;
  session: Session;
  navigatesTo?: string | undefined;
};

export class PendingCommands<Session> {
  readonly #pending = new Map<number, PendingCommand<Session>>();
  readonly #isLive: (session: Session) => boolean;
  /** The command whose response was restored last; undefined after an event. */
  answered: PendingCommand<Session> | undefined;

  /** `isLive`: whether a session has not ended. */
  constructor(isLive: (session: Session) => boolean) {
    this.#isLive = isLive;
  }

  /**
   * Returns the oldest entries when there are too many: their responses cannot be forwarded any
   * more.
   */
  add(pipeId: number, command: PendingCommand<Session>): PendingCommand<Session>[] {
    this.#pending.set(pipeId, command);
    return this.#pending.size > PENDING_MAX ? this.#makeRoom() : [];
  }

  #makeRoom(): PendingCommand<Session>[] {
    let seen = 0;
    // the older half: Chrome may still respond to the others
    for (const [pipeId, { session }] of this.#pending) {
      if (!this.#isLive(session)) this.#pending.delete(pipeId);
      seen += 1;
      if (seen > PENDING_MAX / 2) break;
    }
    const dropped: PendingCommand<Session>[] = [];
    for (const [pipeId, command] of this.#pending) {
      if (this.#pending.size <= PENDING_MAX - ROOM) break;
      this.#pending.delete(pipeId);
      dropped.push(command);
    }
    return dropped;
  }

  /** Restores the client's id in a message of Chrome, in place: `raw` must not be shared. */
  restore(raw: Buffer): Buffer {
    const end = ID_AT + ID_CHARS;
    this.answered = undefined;
    if (raw[ID_AT - 4] !== LETTER_I || raw[end] !== COMMA) return raw; // an event
    this.answered = this.#take(Number(raw.toString('latin1', ID_AT, end)));
    if (this.answered === undefined) return raw;
    const head = `{"id":${this.answered.id}`;
    raw.write(head, end - head.length, 'latin1');
    return raw.subarray(end - head.length);
  }

  /** The response to a command whose session has ended; undefined when it is not of this client. */
  restoreLate(pipeId: number, raw: Buffer): Buffer | undefined {
    const command = this.#take(pipeId);
    if (command === undefined) return undefined;
    return Buffer.from(raw.toString().replace(`"id":${pipeId}`, `"id":${command.id}`));
  }

  #take(pipeId: number): PendingCommand<Session> | undefined {
    const command = this.#pending.get(pipeId);
    this.#pending.delete(pipeId);
    return command;
  }
}
