/**
 * Commands of one client that Chrome has not answered. Ids of several clients are the same, and
 * Chrome answers a command that meets the end of its session with the id alone. So a command
 * reaches Chrome with an id that no other command has (Pipe.newId); its answer gets the client's
 * id back.
 */

/**
 * Ours: a page that hangs answers nothing, and a driver may send commands for each of thousands of
 * elements at once. An entry takes some 80 bytes.
 */
export const UNANSWERED_MAX = 50_000;
/** `{"id":`, with which an answer begins. */
const ID_AT = 6;
/** Of every id that Pipe.newId gives. A client's has as many characters at most. */
export const ID_CHARS = 11;
/** Of `id`: an event begins with `{"method":`. */
const LETTER_I = 0x69;
const COMMA = 0x2c;

/** `id`: the client's own. */
export type Asked<Session> = { id: number; session: Session };

export class Unanswered<Session> {
  readonly #asked = new Map<number, Asked<Session>>();

  /** Gives the oldest command when there are too many: its answer cannot be passed on any more. */
  add(pipeId: number, asked: Asked<Session>): Asked<Session> | undefined {
    this.#asked.set(pipeId, asked);
    if (this.#asked.size <= UNANSWERED_MAX) return undefined;
    for (const [oldest, given] of this.#asked) {
      this.#asked.delete(oldest);
      return given;
    }
    return undefined;
  }

  /** A message of Chrome on a session, written in place: `raw` is nobody else's. */
  restore(raw: Buffer): Buffer {
    const end = ID_AT + ID_CHARS;
    if (raw[ID_AT - 4] !== LETTER_I || raw[end] !== COMMA) return raw; // an event
    const id = this.#take(Number(raw.toString('latin1', ID_AT, end)));
    if (id === undefined) return raw;
    const head = `{"id":${id}`;
    raw.write(head, end - head.length, 'latin1');
    return raw.subarray(end - head.length);
  }

  /** The answer to a command whose session has ended; undefined when it is not of this client. */
  restoreLate(pipeId: number, raw: Buffer): Buffer | undefined {
    const id = this.#take(pipeId);
    if (id === undefined) return undefined;
    return Buffer.from(raw.toString().replace(`"id":${pipeId}`, `"id":${id}`));
  }

  #take(pipeId: number): number | undefined {
    const asked = this.#asked.get(pipeId);
    this.#asked.delete(pipeId);
    return asked?.id;
  }
}
