/** `await using service = await openService()`: starts matrix-child.ts and calls it. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Taken, Told } from './matrix-child.ts';

const PROGRAM = fileURLToPath(new URL('./matrix-child.ts', import.meta.url));

export type Service = AsyncDisposable &
  Told & {
    /** Its memory, and the delay of its event loop since the previous call. */
    taken(): Promise<Taken>;
  };

export async function openService(): Promise<Service> {
  const child = fork(PROGRAM, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  /** Its next message; rejects when it ends instead. */
  const next = async <T>(): Promise<T> => {
    const gone = new AbortController();
    const answer = once(child, 'message', { signal: gone.signal });
    answer.catch(() => undefined); // when it ends first, that is what is thrown
    const end = ended.then(([code]) => Promise.reject(new Error(`the service ended: ${code}`)));
    try {
      return (await Promise.race([answer, end]))[0] as T; // typed in matrix-child.ts
    } finally {
      gone.abort();
    }
  };
  const told = await next<Told>();
  return {
    ...told,
    taken() {
      const answer = next<Taken>();
      child.send('taken');
      return answer;
    },
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect();
      const [code] = await ended;
      if (code !== 0) throw new Error(`the service ended: ${code}`);
    },
  };
}
