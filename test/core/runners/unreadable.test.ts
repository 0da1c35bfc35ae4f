/** Leased work that cannot be read now waits, and no other work waits for it. */
import { once } from 'node:events';
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealerOf } from '../../../core/common/sealer.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { secretValues } from '../../../core/functions/secret-values.ts';
import { readableWork } from '../../../core/runners/work-items.ts';
import { sessionSecrets } from '../../../core/sessions/proxy-secrets.ts';
import { signingKeys } from '../../../core/sessions/signing-keys.ts';
import type { LeasedWork } from '../../../core/store/types/leases.ts';
import type { Store } from '../../../core/store/types.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { Work } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { openContext, textOf } from '../contexts/runs.ts';
import { type Bench, ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/runners/unreadable');
const AWAY = new Fault('BLOBS_UNAVAILABLE', 'The bucket does not answer.');

test('work whose context cannot be read waits until it can, and other work is leased', async () => {
  await using app = await openContext();
  const first = await app.start();
  const { blobId } = await app.save(first.leaseId, 'one');
  await app.end(first.leaseId);
  const file = join(app.dir, 'blobs', blobId);
  renameSync(file, `${file}-aside`);
  symlinkSync(file, file); // to open it is an error, which is not one of a lost file
  const waiting = await app.accept({ id: app.created.id });
  const id = must(waiting.invocation, 'an invocation').id;
  assert.equal(await app.lease('INVOCATION'), []);
  const other = await app.accept(undefined);
  const taken = await app.take();
  assert.is(taken.invocationId, other.invocation?.id);
  await app.end(taken.leaseId);
  const { invocation } = await app.clients.invocations.getInvocation({ id }, app.asProject);
  assert.is(invocation?.status, 'PENDING');
  rmSync(file);
  renameSync(`${file}-aside`, file);
  const late = await app.take();
  assert.is(late.invocationId, id);
  assert.is(await textOf(app, late), 'one');
});

type Lab = {
  /** Sessions for which something is missing now. */
  away?: ReadonlySet<string>;
  /** An invocation with a context in a bucket that does not answer. */
  silent?: string;
  store?: Store;
};

/** Leases like a runner with two free places. */
async function lease(bench: Bench, { away, silent, store = bench.store }: Lab = {}) {
  const sealer = sealerOf(Buffer.alloc(32));
  const keys = signingKeys(sealer);
  const files = await openBlobFiles(join(bench.dir, 'blobs'));
  const options = {
    store,
    sealer,
    now: () => T0,
    files: {
      ...files,
      async head(_id: string, _maxBytes: number, signal?: AbortSignal) {
        await once(must(signal, 'a signal'), 'abort');
        throw AWAY;
      },
    },
    log: openLog({ role: 'core', level: 'silent' }),
    secrets: sessionSecrets(sealer),
    secretValues: secretValues({ store, sealer, now: () => T0 }),
    signingKeys: {
      ...keys,
      of(sessionId: string) {
        if (away?.has(sessionId)) throw AWAY;
        return keys.of(sessionId);
      },
    },
  };
  return readableWork(options, async () => {
    const taken = await bench.offer('invocation', PLACES);
    return taken.map((one): LeasedWork => {
      return one.id === silent && one.kind === 'invocation' ? { ...one, context: CONTEXT } : one;
    });
  });
}

const PLACES = 2;
const CONTEXT = {
  id: 'context',
  persist: false,
  blobId: 'blob',
  publicKey: '',
  privateKey: Buffer.alloc(0),
  keyPairId: 'pair',
};
const idsOf = (work: readonly Work[]) =>
  work.map(({ item }) => item?.$case === 'invocation' && item.value.invocationId);

for (const engine of ENGINES) {
  test(`${engine.name}: work of one project that waits holds up no other project`, async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await bench.project('a'), await bench.project('b')];
    const [ofA, ofB] = [await bench.publish(a), await bench.publish(b)];
    const broken = [];
    for (let nth = 0; nth < 3 * PLACES; nth += 1) broken.push(await bench.accept(a, ofA));
    const away = new Set(broken.map(({ sessionId }) => sessionId));
    assert.equal((await lease(bench, { away })).work, []);
    const { id } = await bench.accept(b, ofB);
    assert.equal(idsOf((await lease(bench, { away })).work), [id]);
    const all: unknown[] = [];
    for (let left = broken.length; left > 0; left -= PLACES) {
      all.push(...idsOf((await lease(bench)).work));
    }
    assert.equal(all.sort(), broken.map((one) => one.id).sort(), 'none was ended');
  });

  test(`${engine.name}: work is sent although other work cannot be put back`, async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await bench.project('a'), await bench.project('b')];
    const { sessionId } = await bench.accept(a, await bench.publish(a));
    const { id } = await bench.accept(b, await bench.publish(b));
    const putBackWork = (): Promise<void> => Promise.reject(new Fault('CORE_UNAVAILABLE', 'busy'));
    const store = { ...bench.store, putBackWork };
    assert.equal(idsOf((await lease(bench, { away: new Set([sessionId]), store })).work), [id]);
  });

  test(`${engine.name}: work is sent although a bucket is silent about other work`, async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await bench.project('a'), await bench.project('b')];
    const { id: silent } = await bench.accept(a, await bench.publish(a));
    const { id } = await bench.accept(b, await bench.publish(b));
    const { work, againMs } = await lease(bench, { silent });
    assert.equal(idsOf(work), [id]);
    assert.ok(must(againMs, 'it is tried again') > 0);
    assert.equal(idsOf((await lease(bench)).work), [silent], 'it waits');
  });
}

test.run();
