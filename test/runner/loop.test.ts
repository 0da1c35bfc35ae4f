/** The loop that leases work: who may come for a piece of work is foretold before core knows. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { openLog } from '../../proto/log.ts';
import type { Clients } from '../../proto/services.ts';
import type { Leases } from '../../runner/leases.ts';
import { workLoop } from '../../runner/loop.ts';

const loop = suite('runner/loop');

/** Offers two pieces of work once; gives what happened, in order. */
async function run(isTold: boolean): Promise<string[]> {
  const acts: string[] = [];
  const ending = new AbortController();
  const heard = Promise.withResolvers<void>();
  const offered = ['a', 'b'].map((leaseId): Work => ({ leaseId, item: undefined }));
  let polls = 0;
  const runners = {
    async leaseWork() {
      polls += 1;
      if (polls === 1) return { work: offered };
      ending.abort();
      throw ending.signal.reason;
    },
  } as unknown as Clients['runners'];
  const lost = new AbortController();
  const leases = {
    held: () => 0,
    async take(ids: string[]) {
      acts.push(`core hears of ${ids}`);
      await heard.promise;
      if (!isTold) lost.abort();
    },
    hold: () => ({ lost: lost.signal, [Symbol.dispose]() {} }),
  } as unknown as Leases;
  const looping = workLoop({
    ...{ kind: 'INVOCATION', max: 4, call: {}, runner: { runnerId: 'r', instanceId: 'i' } },
    ...{ clients: { runners }, leases, signal: ending.signal },
    log: openLog({ role: 'test', level: 'silent' }),
    onSuperseded() {},
    foretell({ leaseId }) {
      acts.push(`${leaseId} foretold`);
      return { [Symbol.dispose]: () => void acts.push(`${leaseId} forgotten`) };
    },
    async run({ leaseId }, held) {
      acts.push(`${leaseId} prepared`);
      await held.taken;
      acts.push(`${leaseId} ${held.lost.aborted ? 'left' : 'runs'}`);
    },
  });
  while (!ending.signal.aborted) await new Promise((resolve) => setImmediate(resolve));
  heard.resolve();
  await looping;
  return acts;
}

const BEFORE = ['a foretold', 'b foretold', 'core hears of a,b', 'a prepared', 'b prepared'];

loop('work is foretold, then prepared while core hears that it came', async () => {
  const acts = await run(true);
  assert.equal(acts.slice(0, 5), BEFORE);
  assert.equal(acts.slice(5).toSorted(), ['a forgotten', 'a runs', 'b forgotten', 'b runs']);
});

loop('when core cannot be told, it is left and forgotten', async () => {
  const acts = await run(false);
  assert.equal(acts.slice(0, 5), BEFORE);
  assert.equal(acts.slice(5).toSorted(), ['a forgotten', 'a left', 'b forgotten', 'b left']);
});

loop.run();
