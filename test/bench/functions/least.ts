/**
 * `node test/bench/functions/least.ts [runs]`: the floor of a trivial function on this machine,
 * which must be idle: the same steps by the same libraries, and nothing else. A service accepts the
 * invocation over HTTP, a runner leases it and acknowledges the lease over gRPC, a function host
 * runs the handler in a thread, the runner reports the outcome, and a request that waits for it is
 * answered. Each change is a transaction in a thread of the store; three of the four wait for the
 * disk. There are no keys, limits, events, logs, jails or browsers, and no rule is checked. Runs,
 * pauses and warm-up are those of invoke.ts. Prints the CPU time of all its processes, too.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { familyOf } from '../../support/service/processes.ts';
import { tempDirectory } from '../../support/temp.ts';
import { threadsMs } from '../support/cpu.ts';
import { show, timed } from '../support/figures.ts';
import { middle } from '../support/rows.ts';
import { PAUSE_MS, WARM_UP_RUNS } from './pauses.ts';

const RUNS = Number(process.argv[2] ?? 50);

await using dir = tempDirectory('tabern-bench-');
const socket = join(dir.path, 'core.sock');
await using ended = new AsyncDisposableStack();
const { port } = await started<{ port: number }>('service', [join(dir.path, 'db'), socket]);
await started('runner', [socket]);
await Promise.all(Array.from({ length: WARM_UP_RUNS }, run));
await sleep(PAUSE_MS);
const processes = familyOf(process.pid);
const took: number[] = [];
const cpu: number[] = [];
for (let done = 0; done < RUNS; done += 1) {
  const before = cpuMs();
  took.push(...(await timed(1, run)));
  cpu.push(cpuMs() - before);
  await sleep(PAUSE_MS);
}
show(`the least from a request to its outcome, ${RUNS} runs`, took);
console.log(`CPU until the answer, of its client, too: ${middle(cpu).toFixed(1)} ms`);

/** Its first message, when it is ready. Its early end fails the run. */
async function started<T>(role: string, args: string[]): Promise<T> {
  const child = fork(new URL(`./least/${role}.ts`, import.meta.url), args);
  const exited = once(child, 'exit');
  ended.defer(async () => {
    if (child.connected) child.disconnect();
    await exited;
  });
  const early = exited.then(([code]) => Promise.reject(new Error(`${role} ended with ${code}`)));
  const [message] = await Promise.race([once(child, 'message'), early]);
  return message;
}

function cpuMs(): number {
  const threads = processes.flatMap(({ pid }) => [...threadsMs(pid).values()]);
  return threads.reduce((sum, ms) => sum + ms, 0);
}

async function run(): Promise<void> {
  const url = `http://127.0.0.1:${port}/v1/invocations`;
  const headers = { 'content-type': 'application/json' };
  const accepted = await fetch(url, { method: 'POST', headers, body: '{}' });
  const { id } = (await accepted.json()) as { id: string };
  const answer = await fetch(`${url}/${id}`);
  const { results } = (await answer.json()) as { results: string };
  if (results !== `{"params":{},"invocation":"${id}"}`) throw new Error(results);
}
