/**
 * `node test/bench/fuzz.ts [count]`: the effect of hostile clients on others. Measures a good
 * request in a loop and the delay of the service's event loop: without other clients, beside wild
 * requests to each operation (20 by default), and beside thousands of slow sockets. Read the
 * ratios.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { openFlood } from '../gateway/fuzz/flood.ts';
import { openService } from '../gateway/fuzz/service.ts';
import { quantile, timed } from './support/figures.ts';
import type { Attack } from './support/fuzz-attack.ts';

const COUNT = Number(process.argv[2] ?? 20);
const SLOW = 2_000;
const QUIET_MS = 5_000;
const MIB = 1 << 20;

type Figures = { p99: number; lateMs: number };

await using service = await openService();
using flood = await openFlood(service);

await attack('wild', COUNT); // until every route has been compiled
const quiet = await beside('no other client', pause(QUIET_MS));
const before = (await service.taken()).rssBytes;
await beside(`${COUNT} wild requests for each operation`, attack('wild', COUNT), quiet);
const growth = ((await service.taken()).rssBytes - before) / MIB;
console.log(`memory afterwards: ${growth.toFixed(0)} MiB more`);
await beside(`${SLOW} slow headers, and others`, attack('slow', SLOW), quiet);

async function attack(kind: Attack['kind'], count: number): Promise<void> {
  const { url, ids } = service;
  const program = new URL('./support/fuzz-attack.ts', import.meta.url);
  // Rejects with the attack's error.
  await once(new Worker(program, { workerData: { url, ids, kind, count } }), 'exit');
}

/** Sends requests until the other promise has settled. */
async function beside(title: string, other: Promise<void>, plain?: Figures): Promise<Figures> {
  let isOver = false;
  const ended = other.finally(() => {
    isOver = true;
  });
  await service.taken(); // discards the earlier measurement
  const took: number[] = [];
  while (!isOver) took.push(...(await timed(1, good)));
  await ended;
  const { loopLateMs: lateMs } = await service.taken();
  const p99 = quantile(took, 0.99);
  const answer = `received in ${p99.toFixed(1)} ms${times(p99, plain?.p99)}`;
  const late = `loop ${lateMs.toFixed(1)} ms late${times(lateMs, plain?.lateMs)}`;
  console.log(`${title}: p99 of ${took.length} good requests: ${answer}; ${late}`);
  return { p99, lateMs };
}

async function good(): Promise<void> {
  const status = await flood.good();
  if (status !== 200) throw new Error(`a good request received ${status}`);
}

function times(one: number, plain: number | undefined): string {
  return plain === undefined ? '' : ` = ${(one / plain).toFixed(1)}x`;
}
