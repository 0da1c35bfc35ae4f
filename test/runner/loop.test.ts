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
async function run(take: (ids: string[]) => Promise<Set<string>>): Promise<string[]> {
  const acts: string[] = [];
  const ending = new AbortController();
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
  const leases = {
    held: () => 0,
    take(ids: string[]) {
      acts.push('core hears');
      return take(ids);
    },
    hold: () => ({ [Symbol.dispose]() {} }),
  } as unknown as Leases;
  await workLoop({
    ...{ kind: 'INVOCATION', max: 4, call: {}, runner: { runnerId: 'r', instanceId: 'i' } },
    ...{ clients: { runners }, leases, signal: ending.signal },
    log: openLog({ role: 'test', level: 'silent' }),
    onSuperseded() {},
    foretell({ leaseId }) {
      acts.push(`${leaseId} foretold`);
      return { [Symbol.dispose]: () => void acts.push(`${leaseId} forgotten`) };
    },
    async run({ leaseId }) {
      acts.push(`${leaseId} runs`);
    },
  });
  return acts;
}

loop('what is taken is foretold until it is over, what is not is forgotten at once', async () => {
  const acts = await run(async () => new Set(['b']));
  assert.equal(acts, [
    ...['a foretold', 'b foretold', 'core hears', 'a forgotten', 'b runs', 'b forgotten'],
  ]);
});

loop('when core cannot be told, all is forgotten', async () => {
  const acts = await run(async () => {
    throw new Error('core is away');
  });
  assert.equal(acts.toSorted(), [
    ...['a foretold', 'a forgotten', 'b foretold', 'b forgotten', 'core hears'],
  ]);
});

loop.run();
