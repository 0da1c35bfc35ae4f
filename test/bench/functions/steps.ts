/**
 * `node test/bench/functions/steps.ts [runs]`: where the time of a trivial function goes: when each
 * span of its trace begins and ends, from the request on, as medians. The service runs as in
 * invoke.ts; its spans cost some of the time. Then the CPU time of each process until the answer,
 * and what the promises cost on this machine: a write of 4 KiB that waits for the disk, of which an
 * invocation has three, one after the other.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { must } from '../../../proto/common/must.ts';
import { type Invocation, isOver, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { familyOf } from '../../support/service/processes.ts';
import { SPARES } from '../../support/service/serve.ts';
import type { Made } from '../../support/service/spans.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';
import { threadsMs } from '../support/cpu.ts';
import { quantile, show, timed } from '../support/figures.ts';
import { middle } from '../support/rows.ts';
import { settled } from '../support/settled.ts';
import { PAUSE_MS, WARM_UP_RUNS } from './pauses.ts';

const RUNS = Number(process.argv[2] ?? 50);
const PRELOAD = fileURLToPath(new URL('../../support/service/spans-preload.ts', import.meta.url));
const SYNCS = 200;
const BLOCK_BYTES = 4_096;

type Span = Pick<Made, 'name' | 'startTime' | 'endTime'> & { own: { traceId: string } };

await using dir = tempDirectory();
const file = join(dir.path, 'spans');
await using stack = await boot({
  env: { ...SPARES, OTEL_TEST_SPANS_FILE: file },
  preload: PRELOAD,
  isDirect: true,
});
const functionId = must((await publish(stack))['trivial'], 'the function');
await Promise.all(Array.from({ length: WARM_UP_RUNS }, () => run(stack)));
await settled(stack.pid);
const begins = new Map<string, number>();
const took: number[] = [];
const used: Map<string, number>[] = [];
const watched = await processesOf(stack);
while (begins.size < RUNS) {
  const traceId = randomBytes(16).toString('hex');
  begins.set(traceId, performance.timeOrigin + performance.now());
  const before = cpuMs(watched);
  took.push(...(await timed(1, () => run(stack, traceId))));
  used.push(new Map([...cpuMs(watched)].map(([name, ms]) => [name, ms - (before.get(name) ?? 0)])));
  await sleep(PAUSE_MS);
}
show(`invoke -> COMPLETED, ${RUNS} runs`, took);
showSteps(await until(() => endedTraces(begins.size)));
showCpu();
await using disk = tempDirectory('tabern-bench-');
showSyncs(join(disk.path, 'block'));

/** Until its invocation is COMPLETED. */
async function run({ call }: Stack, traceId?: string): Promise<void> {
  const headers =
    traceId === undefined ? {} : { traceparent: `00-${traceId}-${'e'.repeat(16)}-01` };
  const path = `/v1/functions/${functionId}/invoke`;
  const { id } = await call<Invocation>(path, { json: {}, headers });
  let status: string;
  do {
    const ended = await call<Invocation>(`/v1/functions/invocations/${id}?wait=30`, { headers });
    status = ended.status;
  } while (!isOver(status));
  if (status !== 'COMPLETED') throw new Error(status);
}

/** The spans of the runs, when all have ended. */
function endedTraces(count: number): Span[] | undefined {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const spans = lines.map((line) => JSON.parse(line) as Span);
  const ours = spans.filter(({ own }) => begins.has(own.traceId));
  return ours.filter(({ name }) => name === 'runner invocation').length === count
    ? ours
    : undefined;
}

function showSteps(spans: readonly Span[]): void {
  const names = [...new Set(spans.map(({ name }) => name))];
  const rows = names.map((name) => {
    const of = spans.filter((span) => span.name === name);
    const since = (time: number, { own }: Span): number => time - (begins.get(own.traceId) ?? time);
    return {
      name,
      begin: middle(of.map((span) => since(span.startTime, span))),
      end: middle(of.map((span) => since(span.endTime, span))),
    };
  });
  for (const { name, begin, end } of rows.toSorted((one, other) => one.begin - other.begin)) {
    console.log(
      `  ${name.padEnd(42)} ${begin.toFixed(1).padStart(6)} ${end.toFixed(1).padStart(6)}`,
    );
  }
}

/** The service's processes without its browsers, and this one. */
async function processesOf(stack: Stack): Promise<[string, number][]> {
  const runner = await stack.runnerPid();
  const hosts = familyOf(runner).filter(({ command }) => /host\/main\.ts/.test(command));
  return [
    ['gateway and core', stack.pid],
    ['runner', runner],
    ...hosts.map(({ pid }): [string, number] => ['function hosts', pid]),
    ['this client', process.pid],
  ];
}

/** Since their start, in milliseconds, by process: of the main thread, and of all others. */
function cpuMs(processes: readonly [string, number][]): Map<string, number> {
  const ms = new Map<string, number>();
  for (const [name, pid] of processes) {
    for (const [thread, used] of threadsMs(pid)) {
      const part = thread === pid ? name : `${name}, other threads`;
      ms.set(part, (ms.get(part) ?? 0) + used);
    }
  }
  return ms;
}

function showCpu(): void {
  const names = [...new Set(used.flatMap((one) => [...one.keys()]))];
  const rows = names.map((name) => [name, middle(used.map((one) => one.get(name) ?? 0))] as const);
  console.log(`CPU until the answer: ${rows.reduce((sum, [, ms]) => sum + ms, 0).toFixed(1)} ms`);
  for (const [name, ms] of rows) console.log(`  ${name.padEnd(42)} ${ms.toFixed(1).padStart(6)}`);
}

function showSyncs(path: string): void {
  const block = Buffer.alloc(BLOCK_BYTES, 1);
  const descriptor = openSync(path, 'a');
  const waits: number[] = [];
  for (let sync = 0; sync < SYNCS; sync += 1) {
    const before = performance.now();
    writeSync(descriptor, block);
    fdatasyncSync(descriptor);
    waits.push(performance.now() - before);
  }
  closeSync(descriptor);
  const p50 = quantile(waits, 0.5);
  console.log(
    `a write of 4 KiB and its sync: ${p50.toFixed(2)} ms; three: ${(3 * p50).toFixed(1)} ms`,
  );
}
