/** Ends of PostgreSQL, of a core and of a connection: nothing acknowledged is lost, all goes on. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { openPostgres } from '../../../../core/store/server.ts';
import type { Store } from '../../../../core/store/types.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { faultOf } from '../../../support/fault.ts';
import { until } from '../../../support/poll.ts';
import { type Cluster, hasPostgres, startPostgres } from '../../../support/postgres.ts';
import { T0 } from '../engines.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
const ACKNOWLEDGED = 40;
const test = suite('core/store/postgres/faults');

function open(url: string): Promise<Store> {
  const log = openLog({ role: 'core', level: 'silent' });
  return openPostgres({ url, directUrl: url, isPooled: false, durability: 'full', log });
}

async function projectIn(store: Store): Promise<string> {
  const row = { id: newId(), name: 'p', defaultTimeout: 900, concurrency: 1_000_000 };
  return (await store.ensureProject({ ...row, createdAt: T0, updatedAt: T0 })).id;
}

/** The lines of a core that is the leader, and the process. */
async function startChild(url: string, projectId: string) {
  const child = spawn(process.execPath, [CHILD, url, projectId], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => void lines.push(line));
  await until(() => lines[0] === 'leader');
  return { child, ids: () => lines.slice(1) };
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

async function onCluster(run: (cluster: Cluster, url: string) => Promise<void>): Promise<void> {
  await using cluster = await startPostgres();
  await run(cluster, await cluster.createDatabase());
}

if (hasPostgres()) {
  test('a killed leader loses nothing that was acknowledged, and another core leads', () =>
    onCluster(async (_, url) => {
      const first = await open(url);
      const projectId = await projectIn(first);
      await first.close();
      const { child, ids } = await startChild(url, projectId);
      const store = await open(url);
      assert.is(store.isLeader(), false, 'one core alone leads');
      await until(() => ids().length >= ACKNOWLEDGED);
      await killed(child);
      await until(() => store.isLeader());
      const list = { projectId, status: undefined, max: 1_000_000 };
      const kept = new Set((await store.listSessions(list)).map(({ id }) => id));
      assert.equal(
        ids().filter((id) => !kept.has(id)),
        [],
      );
      await store.close();
    }));

  test('while PostgreSQL is down operations are refused, and afterwards all goes on', () =>
    onCluster(async (cluster, url) => {
      const store = await open(url);
      const projectId = await projectIn(store);
      await until(() => store.isLeader());
      await cluster.kill();
      const fault = await faultOf(store.listSessions({ projectId, status: undefined, max: 1 }));
      assert.is(fault.reason, 'CORE_UNAVAILABLE');
      await until(() => !store.isLeader());
      await cluster.start();
      const list = () => store.listSessions({ projectId, status: undefined, max: 1 });
      assert.equal(await until(() => list().catch(() => undefined)), []);
      await until(() => store.isLeader());
      await store.close();
    }));

  test('a commit of one core wakes listeners of another', () =>
    onCluster(async (_, url) => {
      const [one, two] = [await open(url), await open(url)];
      const wakes: string[] = [];
      two.onWake('work:build', () => void wakes.push('work:build'));
      const projectId = await projectIn(one);
      const blob = { projectId, size: 1, sha256: 'aa', createdAt: T0, kind: 'BUILD_ARCHIVE' };
      const archiveBlobId = newId();
      await one.addBlob({ ...blob, id: archiveBlobId } as never);
      const times = { at: T0, waitUntil: T0 + 1, expiresAt: T0 + 1 };
      const build = { id: newId(), projectId, entrypoint: 'index.ts', archiveBlobId };
      await one.createBuild({ ...build, ...times, queueMax: 10 });
      await until(() => wakes.length > 0);
      await Promise.all([one.close(), two.close()]);
    }));

  test('connections that the server ends are replaced', () =>
    onCluster(async (_, url) => {
      const store = await open(url);
      const projectId = await projectIn(store);
      const list = () => store.listSessions({ projectId, status: undefined, max: 1 });
      await Promise.all([list(), list(), list()]);
      const sql = postgres(url, { max: 1, onnotice: () => {} });
      await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND application_name LIKE 'tabern%'`;
      await sql.end();
      assert.equal(await until(() => list().catch(() => undefined)), []);
      await until(() => store.isLeader());
      await store.close();
    }));
}

test.run();
