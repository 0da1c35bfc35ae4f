/**
 * Ids of commands that Chrome has not answered. A command that meets the end of its session is
 * answered without the session's id: by its own id the relay finds the client that sent it. Pure,
 * but for what it remembers.
 */

/** Ours: the oldest are forgotten, as a page that hangs answers nothing. */
const IDS_MAX = 5_000;

export class Unanswered {
  readonly #ids = new Set<number>();

  add(id: number): void {
    this.#ids.add(id);
    if (this.#ids.size <= IDS_MAX) return;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      return;
    }
  }

  addAll(others: Unanswered): void {
    for (const id of others.#ids) this.add(id);
  }

  /** Whether it was one of them. */
  settle(id: number): boolean {
    return this.#ids.delete(id);
  }
}
