/** Cores as processes on one PostgreSQL of this machine, and what all of them use. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { openPostgres } from '../../../core/store/postgres/open.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../../../proto/rpc/services.ts';
import type { Opener } from '../../core/store/engines.ts';
import { startPostgres } from '../../support/postgres.ts';
import { startCore } from '../../support/service/command.ts';
import { familyOf } from '../../support/service/processes.ts';
import { tempDirectory } from '../../support/temp.ts';
import { ticksOf } from '../support/settled.ts';

const LIMIT_MS = 1_800_000;
/** Connections for the plain thing: as many as a core has for work. */
const PLAIN_MAX = 12;
const TICKS_A_SECOND = 100;
const ROLES = ['operator', 'gateway', 'runner'] as const;
type Role = (typeof ROLES)[number];
/** Of at least 32 characters, and another one for each role. */
const tokenOf = (role: Role) => `a-token-that-a-benchmark-gives-to-the-${role}`;

/** Seconds of CPU so far. */
type Cpu = { core: number; postgres: number };

export type Cores = AsyncDisposable & {
  /** Of each core. */
  clients: Clients[];
  as(role: Role): CallOptions;
  /**
   * Transactions so far: all of the cores' database, as the server counts them; those of the server
   * that wrote, `insert` included.
   */
  transactions(): Promise<{ all: number; writing: number }>;
  /** The plain thing: a transaction of one INSERT, in another database of the server. */
  insert(): Promise<unknown>;
  /** A store of this process on the same database. */
  engine: Opener;
  cpu(): Cpu;
};

export async function startCores(count: number): Promise<Cores> {
  await using opened = new AsyncDisposableStack();
  const cluster = opened.use(await startPostgres());
  const url = await cluster.createDatabase();
  const other = postgres(`${cluster.url}/postgres`, { max: PLAIN_MAX, onnotice: () => {} });
  opened.defer(() => other.end());
  await other`CREATE TABLE plain (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text TEXT)`;
  const [file] = await other`SELECT pg_read_file('postmaster.pid') AS text`;
  const server = Number.parseInt(String(file?.['text']), 10);
  const env = {
    TABERN_DATABASE_URL: url,
    TABERN_KEY_PAIRS: '0',
    TABERN_QUEUE_MAX: '1000000',
    ...Object.fromEntries(
      ROLES.map((role) => [`TABERN_${role.toUpperCase()}_TOKEN`, tokenOf(role)]),
    ),
  };
  const [clients, pids, dirs]: [Clients[], number[], string[]] = [[], [], []];
  for (let n = 0; n < count; n += 1) {
    const dir = opened.use(tempDirectory()).path;
    const [first] = dirs; // all have its master key
    if (first) cpSync(join(first, 'keys'), join(dir, 'keys'), { recursive: true });
    const { run } = opened.use(await startCore({ ...env, TABERN_DATA: dir }, LIMIT_MS));
    clients.push(remoteClients(opened.use(new Channel(`unix:${join(dir, 'core.sock')}`))));
    pids.push(must(run.child.pid, 'a pid'));
    dirs.push(dir);
  }
  const log = openLog({ role: 'core', level: 'silent' });
  const options = { url, directUrl: url, isPooled: false, durability: 'normal', log } as const;
  const kept = opened.move();
  return {
    clients,
    as: (role) => ({ metadata: { authorization: `Bearer ${tokenOf(role)}` } }),
    async transactions() {
      const [row] = await other`
        SELECT xact_commit + xact_rollback AS all,
          pg_snapshot_xmax(pg_current_snapshot())::TEXT AS writing
        FROM pg_stat_database WHERE datname = ${new URL(url).pathname.slice(1)}`;
      return { all: Number(row?.['all']), writing: Number(row?.['writing']) };
    },
    insert: () => other`INSERT INTO plain (text) VALUES ('a')`,
    engine: { name: 'postgres', open: () => openPostgres(options) },
    cpu: () => ({ core: secondsOf(pids), postgres: secondsOf([server]) }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Of the processes and their descendants. */
function secondsOf(pids: readonly number[]): number {
  const all = pids.flatMap((pid) => familyOf(pid).map((one) => one.pid));
  return all.reduce((sum, pid) => sum + ticksOf(pid), 0) / TICKS_A_SECOND;
}

export function used(before: Cpu, after: Cpu): Cpu {
  return { core: after.core - before.core, postgres: after.postgres - before.postgres };
}
