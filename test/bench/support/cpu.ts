/** CPU time of a process by thread, fine enough for some milliseconds. */
import { readdirSync, readFileSync } from 'node:fs';

/** In milliseconds since each thread's start. Those of threads that have ended are not in it. */
export function threadsMs(pid: number): Map<number, number> {
  const task = `/proc/${pid}/task`;
  return new Map(
    readdirSync(task).map((thread) => {
      const [nanoseconds] = readFileSync(`${task}/${thread}/schedstat`, 'utf8').split(' ');
      return [Number(thread), Number(nanoseconds) / 1e6];
    }),
  );
}
