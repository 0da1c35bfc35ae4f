/**
 * The places of a runner: one project within its limits may not hold all of them, and a project
 * alone may.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { WorkKind } from '../../../core/store/types/leases.ts';
import { type Bench, ENGINES, HOLDER, LEASE_MS, openBench, T0 } from './engines.ts';

const KINDS = ['invocation', 'session', 'build'] as const;
/** More than any of these tests leases. */
const CAP = 100;

for (const engine of ENGINES) {
  const test = suite(`store places/${engine.name}`);

  for (const kind of KINDS) {
    test(`a project does not take the last place from one that has no ${kind}`, async () => {
      await using bench = await openBench(engine);
      const [a, b] = [await tenant(bench, 'a'), await tenant(bench, 'b')];
      for (let i = 0; i < 4; i += 1) await a.wait(kind);
      assert.equal(await lease(bench, kind, { free: 2, places: 2 }), [a.id]);
      assert.equal(await lease(bench, kind, { free: 1, places: 2 }), []);
      for (let i = 0; i < 2; i += 1) await b.wait(kind);
      assert.equal(await lease(bench, kind, { free: 1, places: 2 }), [b.id]);
      assert.equal(await lease(bench, kind, { free: 1, places: 2 }), [], 'none is left');
    });
  }

  test('an eighth of the places is reserved for projects without work, one each', async () => {
    await using bench = await openBench(engine);
    const [a, b, c, d] = [
      await tenant(bench, 'a'),
      await tenant(bench, 'b'),
      await tenant(bench, 'c'),
      await tenant(bench, 'd'),
    ];
    for (let i = 0; i < 30; i += 1) await a.wait('session');
    const places = 25;
    assert.is((await lease(bench, 'session', { free: 25, places })).length, 22);
    for (const one of [b, b, c, c, d, d]) await one.wait('session');
    const got = await lease(bench, 'session', { free: 3, places });
    assert.equal(got, [b.id, c.id, d.id]);
  });

  test('a free place fills the reserve before it serves a project that has one', async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await tenant(bench, 'a'), await tenant(bench, 'b')];
    const places = 4;
    for (let i = 0; i < 6; i += 1) await a.wait('session');
    const first = await offer(bench, 'session', { free: 4, places });
    assert.is(first.length, 3);
    await b.wait('session');
    assert.equal(await lease(bench, 'session', { free: 1, places }), [b.id]);
    await b.wait('session');
    await end(bench, first[0]?.leaseId);
    assert.equal(await lease(bench, 'session', { free: 1, places }), [], 'the reserve is whole');
    // The poll of a runner is as wide as when it began: what is free is counted here.
    await end(bench, first[1]?.leaseId);
    const turn = await lease(bench, 'session', { free: 1, places });
    assert.is(turn.length, 1, 'and what is beyond it is given out');
  });

  test('an end wakes waiting runners, whatever its project', async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await tenant(bench, 'a'), await tenant(bench, 'b')];
    await b.wait('session');
    await a.wait('session');
    const held = await offer(bench, 'session', { free: 3, places: 3 });
    assert.is(held.length, 2);
    await b.wait('session');
    const ofA = held.find(({ projectId }) => projectId === a.id);
    assert.equal(await lease(bench, 'session', { free: 1, places: 3 }), []);
    const woken = new Promise<void>((resolve) => {
      bench.store.onWake('work:session', () => resolve());
    });
    await end(bench, ofA?.leaseId);
    await woken;
    assert.equal(await lease(bench, 'session', { free: 1, places: 3 }), [b.id]);
  });

  test('the only project with a valid key may use all places', async () => {
    await using bench = await openBench(engine);
    const a = await tenant(bench, 'a');
    await bench.project('without-a-key');
    const left = await tenant(bench, 'left');
    await bench.store.revokeApiKey({ id: left.keyId, at: T0 });
    for (let i = 0; i < 8; i += 1) await a.wait('session');
    assert.is((await lease(bench, 'session', { free: 8, places: 8 })).length, 8);
  });

  test('a runner with one place, or an unknown number, reserves none', async () => {
    await using bench = await openBench(engine);
    const [a] = [await tenant(bench, 'a'), await tenant(bench, 'b')];
    for (let i = 0; i < 3; i += 1) await a.wait('session');
    assert.is((await lease(bench, 'session', { free: 1, places: 1 })).length, 1);
    assert.is((await bench.offer('session', 2)).length, 2);
  });

  test('each kind of work has its own places', async () => {
    await using bench = await openBench(engine);
    const [a] = [await tenant(bench, 'a'), await tenant(bench, 'b')];
    for (const kind of KINDS) await a.wait(kind);
    for (const kind of KINDS) {
      assert.is((await lease(bench, kind, { free: 2, places: 2 })).length, 1, kind);
    }
  });

  test.run();
}

type Places = { free: number; places: number };

function offer(bench: Bench, kind: WorkKind, { free, places }: Places) {
  const leaseIds = Array.from({ length: free }, () => newId());
  const wanted = { ...HOLDER, kind, leaseIds, places, leaseMs: LEASE_MS, at: T0 };
  return bench.store.leaseWork(wanted);
}

/** The projects whose work was leased, in order. */
async function lease(bench: Bench, kind: WorkKind, places: Places): Promise<string[]> {
  return (await offer(bench, kind, places)).map(({ projectId }) => projectId);
}

async function end({ store }: Bench, leaseId = ''): Promise<void> {
  await store.startSession({ leaseId, startedAt: T0, at: T0 });
  const outcome = { status: 'COMPLETED', reason: '', proxyBytes: 0 } as const;
  assert.is(await store.completeSession({ leaseId, ...outcome, at: T0 }), true);
}

/** A project with a key; `wait` puts a piece of work of it into the queue. */
async function tenant(bench: Bench, name: string) {
  const { store } = bench;
  const projectId = await bench.project(name, CAP);
  const fn = await bench.publish(projectId);
  const keyId = newId();
  await store.addApiKey({ hash: Buffer.from(keyId), projectId, publicId: keyId, name, at: T0 });
  const times = { at: T0, waitUntil: T0 + 60_000, expiresAt: T0 + 600_000 };
  const add = {
    invocation: () => bench.accept(projectId, fn),
    async session() {
      const settings = { contextId: null, extensionId: null, keepAlive: false, params: '{}' };
      const session = { id: newId(), projectId, region: 'us-west-2', ...settings };
      await store.createSession({ ...session, ...times, userMetadata: null, timeoutMs: 60_000 });
    },
    async build() {
      const blob = { projectId, size: 1, sha256: 'aa', createdAt: T0 };
      const archiveBlobId = newId();
      await store.addBlob({ ...blob, id: archiveBlobId, kind: 'BUILD_ARCHIVE' });
      const build = { id: newId(), projectId, entrypoint: 'index.ts', archiveBlobId };
      await store.createBuild({ ...build, ...times, queueMax: CAP });
    },
  };
  return { id: projectId, keyId, wait: async (kind: WorkKind) => void (await add[kind]()) };
}
