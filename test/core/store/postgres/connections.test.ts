/** Connections that stand still, that are refused, or of which there are few. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { LOCKS } from '../../../../core/store/postgres/engine/locks.ts';
import { openPostgres } from '../../../../core/store/server.ts';
import type { Store } from '../../../../core/store/types.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { must } from '../../../../proto/common/must.ts';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { faultOf } from '../../../support/fault.ts';
import { until } from '../../../support/poll.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { HOLDER, newSession, openBench, T0 } from '../engines.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
const ENGINE = { name: 'postgres', open: openOnPostgres };
const test = suite('core/store/postgres/connections');

const listSessions = (store: Store, projectId: string) =>
  store.listSessions({ projectId, status: undefined, max: 1 });

async function projectIn(store: Store, name = 'p'): Promise<string> {
  const row = { id: newId(), name, defaultTimeout: 900, concurrency: 1_000 };
  return (await store.ensureProject({ ...row, createdAt: T0, updatedAt: T0 })).id;
}

/** Another program on the database. */
async function programOn(url: string) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end() });
}

/** A database, and the URL of a role of its own in it. */
async function withRole(role: string) {
  const temp = tempDirectory();
  const url = await urlOf(temp.path);
  const sql = await programOn(url);
  const name = `${role}_${newId().slice(-8)}`;
  await sql.unsafe(`
    CREATE ROLE ${name} LOGIN;
    GRANT ALL ON SCHEMA public TO ${name};
    GRANT ALL ON ALL TABLES IN SCHEMA public TO ${name};
    GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${name}`);
  return {
    url,
    sql,
    name,
    roleUrl: url.replace('tabern@', `${name}@`),
    async [Symbol.asyncDispose]() {
      await sql.end();
      await temp[Symbol.asyncDispose]();
    },
  };
}

/** Ends the connections of the role, which gets no other one. */
async function cutOff({ sql, name }: { sql: postgres.Sql; name: string }): Promise<void> {
  await sql.unsafe(`ALTER ROLE ${name} NOLOGIN`);
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${name}`;
}

function open(options: { url: string; directUrl: string }, logged: string[] = []) {
  const error = (_: object, message: string) => void logged.push(message);
  const log = Object.assign(openLog({ role: 'core', level: 'silent' }), { error });
  return openPostgres({ ...options, isPooled: false, durability: 'normal', log });
}

if (hasPostgres()) {
  test('a leader that stands still loses its lock, and its transaction its rows', async () => {
    await using bench = await openBench(ENGINE);
    const projectId = await bench.project('p', 1_000_000);
    await bench.store.close();
    const url = await urlOf(bench.dir);
    const child = spawn(process.execPath, [CHILD, url, projectId], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const gone = once(child, 'exit');
    let created = 0;
    createInterface({ input: child.stdout }).on('line', () => {
      created += 1;
    });
    await until(() => created > 5);
    const store = await open({ url, directUrl: url });
    assert.is(store.isLeader(), false);
    child.kill('SIGSTOP');
    await until(() => store.isLeader());
    const session = await until(() =>
      store.createSession(newSession(projectId)).catch(() => undefined),
    );
    assert.is(session.projectId, projectId);
    child.kill('SIGKILL');
    await gone;
    await store.close();
  });

  test('without the connection for wakes listeners are called at intervals', async () => {
    await using at = await withRole('wakes');
    const logged: string[] = [];
    const [one, two] = [
      await open({ url: at.url, directUrl: at.roleUrl }, logged),
      await open({ url: at.url, directUrl: at.url }),
    ];
    await cutOff(at);
    const projectId = await projectIn(two);
    let woken = 0;
    one.onWake('revocations', () => {
      woken += 1;
    });
    const before = woken;
    await until(() => woken >= before + 2);
    assert.equal(await listSessions(one, projectId), [], 'other operations go on');
    assert.ok(one.lineLostMs() > 0);
    assert.is(two.lineLostMs(), 0);
    const said = 'the connection of TABERN_DATABASE_DIRECT_URL for wakes failed';
    await until(() => logged.includes(said));
    await at.sql.unsafe(`ALTER ROLE ${at.name} LOGIN`);
    await until(() => one.lineLostMs() === 0);
    await Promise.all([one.close(), two.close()]);
  });

  test('a core that hears of no other calls the listeners of work at intervals', async () => {
    await using at = await withRole('unsent');
    const [one, two] = [
      await open({ url: at.url, directUrl: at.roleUrl }),
      await open({ url: at.url, directUrl: at.url }),
    ];
    const projectId = await projectIn(one);
    await two.registerRunner({ ...HOLDER, at: T0 });
    await cutOff(at);
    await until(() => one.lineLostMs() > 0);
    const messages: string[] = [];
    await at.sql.listen('tabern_wakes', (payload) => void messages.push(payload));
    let calls = 0;
    two.onWake('work:session', () => {
      calls += 1;
    });
    const { id } = await one.createSession(newSession(projectId));
    const before = calls;
    await until(() => calls > before);
    const work = await two.leaseWork({ ...LEASE, leaseIds: [newId()] });
    assert.equal(
      work.map((item) => item.id),
      [id],
    );
    assert.equal(messages, []);
    await Promise.all([one.close(), two.close()]);
  });

  test('a connection for wakes that is refused later is closed', async () => {
    await using at = await withRole('refused');
    const { sql, name } = at;
    const store = await open({ url: at.url, directUrl: at.roleUrl });
    await sql.unsafe(`ALTER ROLE ${name} SET lock_timeout = 100`);
    const ofRole = sql`SELECT pid, backend_start FROM pg_stat_activity WHERE usename = ${name}`;
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${name}`;
    await sql`SELECT pg_advisory_lock(${LOCKS.cores})`;
    const seen = new Set<number>();
    await until(async () => {
      for (const { pid } of await sql`
        SELECT pid FROM pg_stat_activity WHERE usename = ${name}`) {
        seen.add(pid as number);
      }
      return seen.size >= 3;
    });
    assert.ok((await ofRole).length <= 1, 'one at a time');
    await sql`SELECT pg_advisory_unlock(${LOCKS.cores})`;
    await until(() => store.isLeader());
    await store.close();
  });

  test('a message of another program on the channel of wakes changes nothing', async () => {
    await using bench = await openBench(ENGINE);
    await until(() => bench.store.isLeader());
    await using sql = await programOn(await urlOf(bench.dir));
    const pid = async () => {
      const [row] = await sql`
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'tabern core'`;
      return row?.['pid'];
    };
    const before = await pid();
    let woken = 0;
    bench.store.onWake('work:build', () => {
      woken += 1;
    });
    for (const payload of ['', 'x', '{}', '{"topics":1}', '{"topics":[null,"work:build"]}']) {
      await sql`SELECT pg_notify('tabern_wakes', ${payload})`;
    }
    await until(() => woken > 0);
    assert.is(await pid(), before);
  });

  test('operations of one project that wait for a lock leave connections to others', async () => {
    await using bench = await openBench(ENGINE);
    const [busy, other] = [await bench.project('busy', 1_000), await bench.project('other')];
    await using sql = await programOn(await urlOf(bench.dir));
    await sql.unsafe(`BEGIN; SELECT 1 FROM queues WHERE project_id = '${busy}' FOR UPDATE`);
    let created = 0;
    const waiting = Promise.allSettled(
      Array.from({ length: 14 }, async () => {
        await bench.store.createSession(newSession(busy));
        created += 1;
      }),
    );
    await using looking = await programOn(await urlOf(bench.dir));
    const locked = () => looking`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await locked()).length >= 6);
    await bench.store.createSession(newSession(other));
    assert.ok((await locked()).length <= 6, 'its share');
    await bench.store.renewLeases(RENEWAL);
    assert.is(created, 0, 'the lock is still held');
    await sql.unsafe('COMMIT');
    await waiting; // on a slow machine their time may be over
  });

  test('with few connections of the server all operations end', async () => {
    await using at = await withRole('few');
    await at.sql.unsafe(`ALTER ROLE ${at.name} CONNECTION LIMIT 3`);
    const store = await open({ url: at.roleUrl, directUrl: at.url });
    const projectId = await projectIn(store);
    const all = Array.from({ length: 60 }, () => store.createSession(newSession(projectId)));
    assert.is((await Promise.all(all)).length, 60);
    await store.close();
  });

  test('eight cores at full use have a place left of those that PostgreSQL gives', async () => {
    await using at = await withRole('eight');
    await at.sql.unsafe(`ALTER ROLE ${at.name} CONNECTION LIMIT ${CONNECTIONS}`);
    await using opened = new AsyncDisposableStack();
    const cores: Store[] = [];
    while (cores.length < CORES) {
      const core = await open({ url: at.roleUrl, directUrl: at.roleUrl });
      cores.push(opened.adopt(core, (store) => store.close()));
    }
    const projectId = await projectIn(must(cores[0], 'a core'));
    await using holding = await programOn(at.url);
    await holding.unsafe('BEGIN; LOCK TABLE runners IN ACCESS EXCLUSIVE MODE');
    const count = async (more = '') => {
      const [row] = await at.sql.unsafe(`
        SELECT COUNT(*)::INTEGER AS n FROM pg_stat_activity WHERE usename = '${at.name}'${more}`);
      return row?.['n'];
    };
    const registering: Promise<void>[] = [];
    for (const [index, core] of cores.entries()) {
      for (let caller = 0; caller <= POOL; caller += 1) {
        const runner = { runnerId: `${index} ${caller}`, instanceId: '1', at: T0 };
        const registered = core.registerRunner(runner).then(() => undefined);
        registered.catch(() => {}); // reported where it is awaited
        registering.push(registered);
      }
      const waiting = POOL * (index + 1);
      await until(async () => (await count(" AND wait_event_type = 'Lock'")) === waiting);
    }
    await until(async () => (await count()) === CORES * (POOL + 1)); // with those for wakes
    await using other = await programOn(at.roleUrl);
    assert.equal([...(await other`SELECT 1 AS one`)], [{ one: 1 }], 'another program');
    await holding.unsafe('COMMIT');
    await Promise.all(registering);
    for (const core of cores) assert.equal(await listSessions(core, projectId), []);
    await until(() => cores.filter((core) => core.isLeader()).length === 1);
  });

  test('a read that waits for a lock ends on the server, too', async () => {
    await using bench = await openBench(ENGINE);
    const projectId = await bench.project('p');
    await using sql = await programOn(await urlOf(bench.dir));
    await sql.unsafe('BEGIN; LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE');
    const fault = await faultOf(listSessions(bench.store, projectId));
    assert.is(fault.reason, 'CORE_UNAVAILABLE');
    const waiting = await sql`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    assert.is(waiting.length, 0);
    await sql.unsafe('COMMIT');
    assert.equal(await listSessions(bench.store, projectId), []);
  });

  test('connections to a replica are given up', async () => {
    await using bench = await openBench(ENGINE);
    const projectId = await bench.project('p');
    await using sql = await programOn(await urlOf(bench.dir));
    const [row] = await sql`SELECT current_database() AS name`;
    await sql.unsafe(`ALTER DATABASE ${row?.['name']} SET default_transaction_read_only = on`);
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    await until(() => !bench.store.isLeader());
    const fault = await faultOf(bench.store.createSession(newSession(projectId)));
    assert.is(fault.reason, 'CORE_UNAVAILABLE');
    await sql.unsafe(`SET transaction_read_only = off;
      ALTER DATABASE ${row?.['name']} RESET default_transaction_read_only`);
    await until(() => bench.store.createSession(newSession(projectId)).catch(() => undefined));
    await until(() => bench.store.isLeader());
  });
}

const CORES = 8;
/** Those of its default, 100, without the 3 of superusers. */
const CONNECTIONS = 97;
/** Connections of a core for its operations. */
const POOL = 11;
const LEASE = { ...HOLDER, kind: 'session', leaseMs: 15_000, at: T0 } as const;
const RENEWAL = { ...HOLDER, leaseIds: [], leaseMs: 15_000, at: T0 };

test.run();
