/**
 * `node test/bench/console/streams.ts [consoles] [seconds]`: the cost of open consoles. Each has
 * a stream of changes and reads the list of sessions when a message arrives, at most once a second,
 * as the page does. CPU is of the service's process, in cores: at rest, and while contexts and
 * functions of the project change all the time. The baseline is the same work without a console.
 */
import { get } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { ticksOf } from '../support/settled.ts';

const CONSOLES = Number(process.argv[2] ?? 1_000);
const SECONDS = Number(process.argv[3] ?? 20);
const READ_PAUSE_MS = 1_000;
const READ_FACTOR = 10;
/** The sessions that the list shows a page of. */
const RUNS = 60;

await using stack = await boot({ isDirect: true });
const { trivial } = await publish(stack);
const functionId = must(trivial, 'the function');
for (let run = 0; run < RUNS; run += 1) await ended(stack, (await invoke(stack, functionId)).id);

const plain = await measured(() => runs(stack));
const counts = { messages: 0, reads: 0 };
const end = new AbortController();
await Promise.all(Array.from({ length: CONSOLES }, () => openConsole(stack)));
const idle = await measured(() => pause(SECONDS * 1_000));
Object.assign(counts, { messages: 0, reads: 0 });
const busy = await measured(() => runs(stack));
end.abort();
console.log(`${CONSOLES} consoles, cores of the service's process`);
console.log(`  runs without a console: ${plain.toFixed(2)}`);
console.log(`  consoles at rest: ${idle.toFixed(2)}`);
console.log(
  `  runs with the consoles: ${busy.toFixed(2)}, of the consoles ${(busy - plain).toFixed(2)}`,
);
console.log(`  ${counts.messages} messages, ${counts.reads} lists read in ${SECONDS} s`);

/** One run after another, about as fast as the service answers. */
async function runs(one: Stack): Promise<void> {
  const until = performance.now() + SECONDS * 1_000;
  while (performance.now() < until) {
    const { id } = await invoke(one, functionId);
    await ended(one, id);
    await pause(100);
  }
}

/** The cores that the service takes during the work. */
async function measured(work: () => Promise<void>): Promise<number> {
  const [before, startedAt] = [ticksOf(stack.pid), performance.now()];
  await work();
  return (10 * (ticksOf(stack.pid) - before)) / (performance.now() - startedAt);
}

/** A stream, and a reader that it wakes. */
async function openConsole({ url, apiKey }: Stack): Promise<void> {
  const headers = { 'x-svc-api-key': apiKey };
  let isBusy = false;
  let isWanted = false;
  const read = async () => {
    isWanted = true;
    if (isBusy) return;
    isBusy = true;
    while (isWanted && !end.signal.aborted) {
      isWanted = false;
      const startedAt = performance.now();
      const answer = await fetch(`${url}/console/api/v1/sessions?limit=50`, { headers });
      await answer.arrayBuffer();
      counts.reads += 1;
      await pause(Math.max(READ_PAUSE_MS, READ_FACTOR * (performance.now() - startedAt)));
    }
    isBusy = false;
  };
  const opened = Promise.withResolvers<void>();
  const request = get(
    `${url}/console/api/v1/changes`,
    { headers, signal: end.signal },
    (answer) => {
      answer.setEncoding('utf8').on('error', () => undefined);
      answer.on('data', (text: string) => {
        opened.resolve();
        if (!text.includes('data: {"kind"')) return;
        counts.messages += 1;
        void read();
      });
    },
  );
  request.on('error', (error) => {
    if (!end.signal.aborted) opened.reject(error);
  });
  return opened.promise;
}
