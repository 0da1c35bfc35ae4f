/**
 * The numbers of messages in both directions, which are counts (proto/spec/resume.md 2), and the
 * commands that the service may not have received. Pure, except for its state.
 */

/** An acknowledgement begins with it; no other message does. */
const RECEIVED_HEAD = '{"method":"Tabern.received"';
/** Messages of both directions between two acknowledgements, and their length in characters. */
const ACKNOWLEDGED_EACH = 64;
const ACKNOWLEDGED_CHARS = 256 << 10;

export class Numbering {
  #commands: string[] = [];
  #keptChars = 0;
  #acknowledged = 0;
  #received = 0;
  #messages = 0;
  #chars = 0;

  /** Messages of the service so far. */
  get received(): number {
    return this.#received;
  }

  /** Commands that the service may not have received, in order. */
  get commands(): readonly string[] {
    return this.#commands;
  }

  /** The length of those in characters. */
  get keptChars(): number {
    return this.#keptChars;
  }

  /** Whether an acknowledgement is due. */
  get isDue(): boolean {
    return this.#messages >= ACKNOWLEDGED_EACH || this.#chars >= ACKNOWLEDGED_CHARS;
  }

  /** Adds the next command. */
  send(command: string): void {
    this.#commands.push(command);
    this.#keptChars += command.length;
    this.#count(command);
  }

  /** Counts a message of the service; false for one that is not numbered, which is for us. */
  receive(message: string): boolean {
    if (message.startsWith(RECEIVED_HEAD)) {
      this.acknowledge(JSON.parse(message).params.received);
      return false;
    }
    this.#received += 1;
    this.#count(message);
    return true;
  }

  /** Drops the commands that the service has received. */
  acknowledge(received: number): void {
    const arrived = this.#commands.splice(0, received - this.#acknowledged);
    for (const { length } of arrived) this.#keptChars -= length;
    this.#acknowledged += arrived.length;
  }

  /** What to send when it is due; the service answers it with its own. */
  acknowledgement(): string {
    this.#messages = 0;
    this.#chars = 0;
    return `${RECEIVED_HEAD},"params":{"received":${this.#received}}}`;
  }

  #count({ length }: string): void {
    this.#messages += 1;
    this.#chars += length;
  }
}
