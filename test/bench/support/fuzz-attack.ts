/**
 * The hostile side of fuzz.ts, in a separate thread, so that its work does not affect the times of
 * the good requests. Ends when the attack is over; prints its own results.
 */
import { workerData } from 'node:worker_threads';
import { openFlood } from '../../gateway/fuzz/flood.ts';
import { openSlow } from '../../gateway/fuzz/slow.ts';
import { until } from '../../support/poll.ts';
import { quantile } from '../support/figures.ts';

export type Attack = { url: string; ids: string[]; kind: 'wild' | 'slow'; count: number };

const SEED = 7;
const DRIP_MS = 1_000;
const LIMIT_MS = 120_000;
const { url, ids, kind, count } = workerData as Attack;

await (kind === 'wild' ? wild() : slow());

async function wild(): Promise<void> {
  using flood = await openFlood({ url, ids });
  for await (const { operation, faults } of flood.faults(count, SEED)) {
    if (faults.length > 0) throw new Error(`${operation}: ${faults[0]}`);
  }
}

/**
 * That many on headers, a quarter of them on bodies, until each is closed; some that read nothing
 * stay.
 */
async function slow(): Promise<void> {
  await using headers = await openSlow(url, { kind: 'headers', count, dripMs: DRIP_MS });
  const quarter = { count: count / 4, dripMs: DRIP_MS };
  await using bodies = await openSlow(url, { kind: 'bodies', ...quarter });
  await using _readers = await openSlow(url, { kind: 'readers', count: count / 20 });
  const all = [
    { name: 'headers', closed: headers.closed, wanted: count },
    { name: 'bodies', closed: bodies.closed, wanted: quarter.count },
  ];
  await until(() => all.every(({ closed, wanted }) => closed.length === wanted), LIMIT_MS);
  for (const { name, closed } of all) {
    const [p50, last] = [quantile(closed, 0.5), Math.max(...closed)];
    console.log(`slow ${name} closed after: p50 ${shown(p50)}, the last ${shown(last)}`);
  }
}

function shown(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
