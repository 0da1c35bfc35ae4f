/** A log that is read in parts, each once: what is added later is read from the end. Pure. */
import type { LogEntry } from './model.ts';

/** GET /console/api/v1/sessions/{id}/logs?from=N. `isEnd`: there is no more for now. */
export type Part = { logs: LogEntry[]; end: number; isEnd: boolean };

export function openParts() {
  const entries: LogEntry[] = [];
  let from = 0;
  return {
    entries,
    /** Where the next part begins. */
    get from(): number {
      return from;
    },
    /** Each read at the end of a full log repeats the entry that says that it is full. */
    add({ logs, end }: Part): void {
      const isRepeated = end === from && logs.at(-1)?.timestamp === entries.at(-1)?.timestamp;
      if (!isRepeated) for (const entry of logs) entries.push(entry);
      from = end;
    },
  };
}
