/** Listeners of topics in this process, and the calls of those that may have missed a wake. */
import type { Topic } from '../../messages.ts';

/** Topics of one object are called at every fifth interval: there may be thousands. */
const OBJECT_TICKS = 5;

export class Wakes {
  readonly #listeners = new Map<Topic, Set<() => void>>();
  #ticks = 0;
  /** Wakes of other cores arrive. */
  isComplete = false;

  onWake(topic: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) {
        this.#listeners.delete(topic);
      }
    };
  }

  wake(topic: Topic): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener();
  }

  all(): void {
    for (const topic of [...this.#listeners.keys()]) this.wake(topic);
  }

  /** At intervals of a second. */
  tick(): void {
    this.#ticks += 1;
    const isTurnOfObjects = !this.isComplete || this.#ticks % OBJECT_TICKS === 0;
    for (const topic of [...this.#listeners.keys()]) {
      if (isTurnOfObjects || !topic.includes(':') || topic.startsWith('work:')) this.wake(topic);
    }
  }
}
