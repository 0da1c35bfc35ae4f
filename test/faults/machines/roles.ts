/**
 * The roles apart (support/service/apart/split.ts) on a PostgreSQL that a test stops: which core is
 * the leader, which runner has a session, and which processes they are.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import postgres from 'postgres';
import { LOCKS } from '../../../core/store/postgres/engine/locks.ts';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { type Cluster, startPostgres } from '../../support/postgres.ts';
import { accepts } from '../../support/servers/front.ts';
import { rolesOf, settingsOf } from '../../support/service/processes.ts';
import { APART, SPLIT } from '../../support/service/serve.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

/** Ours: a start of a role on a busy machine. */
const START_MS = 180_000;

export type Machines = AsyncDisposable & {
  stack: Stack;
  database: Cluster;
  /** The pid of the core with the leader's lock. */
  leader(): Promise<number | undefined>;
  /** The pids of the cores that run. */
  cores(): number[];
  /** Waits until both cores are connected to the database and listen. */
  bothCores(): Promise<void>;
  /** The ids of sessions that the runner has, of those given. */
  heldBy(runnerId: string, sessionIds: readonly string[]): Promise<string[]>;
  runnerPid(runnerId: string): number;
  /** Changes at each registration of the runner. */
  instanceOf(runnerId: string): Promise<string | undefined>;
  /** How many events of the types each resource has. */
  eventsOf(types: readonly string[]): Promise<Map<string, number>>;
};

/** Starts two cores, two gateways and three runners. */
export async function startMachines(webhookCa: string): Promise<Machines> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await startPostgres());
  const url = await database.createDatabase();
  const env = { TABERN_DATABASE_URL: url };
  const stack = opened.use(await boot({ command: SPLIT, env, webhookCa }));
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  opened.defer(() => sql.end());
  const own = (role: string) => rolesOf(stack.pid, role);
  const locked = (lock: number) => sql<{ port: number | null }[]>`
    SELECT client_port AS port FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND database = (
        SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((classid::BIGINT << 32) | objid::BIGINT) = ${lock}`;
  const kept = opened.move();
  return {
    stack,
    database,
    async leader() {
      const [row] = await locked(LOCKS.leader);
      const pids = own('core').map(({ pid }) => pid);
      return row?.port ? pids.find((pid) => hasPort(pid, row.port as number)) : undefined;
    },
    cores: () => own('core').map(({ pid }) => pid),
    async bothCores() {
      await until(async () => (await locked(LOCKS.cores)).length === APART.core, START_MS);
      for (const { pid } of own('core')) await accepts(addressOf(pid));
    },
    async heldBy(runnerId, sessionIds) {
      const rows = await sql<{ id: string }[]>`
        SELECT id FROM jobs WHERE runner_id = ${runnerId} AND id = ANY(${[...sessionIds]})`;
      return rows.map(({ id }) => id);
    },
    runnerPid(runnerId) {
      const setting = `TABERN_RUNNER_ID=${runnerId}`;
      const found = own('runner').find(({ pid }) => settingsOf(pid).includes(setting));
      return must(found, runnerId).pid;
    },
    async instanceOf(runnerId) {
      const rows = await sql`SELECT instance_id FROM runners WHERE id = ${runnerId}`;
      return rows[0]?.['instance_id'] as string | undefined;
    },
    async eventsOf(types) {
      const rows = await sql<{ id: string; count: number }[]>`
        SELECT resource_id AS id, COUNT(*)::INTEGER AS count FROM events
        WHERE type = ANY(${[...types]}) GROUP BY resource_id`;
      return new Map(rows.map(({ id, count }) => [id, count]));
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Where the core listens. */
function addressOf(pid: number): { host: string; port: number } {
  const name = 'TABERN_CORE_LISTEN=';
  const setting = must(
    settingsOf(pid).find((one) => one.startsWith(name)),
    name,
  );
  const [host = '', port] = setting.slice(name.length).split(':');
  return { host, port: Number(port) };
}

/** Whether the process has a TCP connection from the port; not when it has just ended. */
function hasPort(pid: number, port: number): boolean {
  const rows = present(() => readFileSync(`/proc/${pid}/net/tcp`, 'utf8'), '')
    .trim()
    .split('\n');
  const inodes = rows
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .flatMap((fields) => {
      const isOwn = Number.parseInt(fields[1]?.split(':')[1] ?? '', 16) === port;
      return isOwn ? [`socket:[${fields[9]}]`] : [];
    });
  const folder = `/proc/${pid}/fd`;
  const links = present(() => readdirSync(folder), []).map((name) =>
    present(() => readlinkSync(`${folder}/${name}`), ''),
  );
  return links.some((link) => inodes.includes(link));
}

/** What is read of a process or a descriptor, or that value when it is gone meanwhile. */
function present<T>(read: () => T, gone: T): T {
  try {
    return read();
  } catch {
    return gone;
  }
}
