/**
 * A PostgreSQL of the machine's packages for a test file: a cluster in a temporary directory, on a
 * free port of loopback, with a database for each test. As root it runs as the user `postgres`,
 * because PostgreSQL refuses root.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import postgres from 'postgres';
import type { TlsFiles } from '../../proto/tls/pem-files.ts';
import { until } from './poll.ts';
import { freePort } from './port.ts';
import { memoryDirectory } from './run/memory.ts';
import { familyOf, signalAll } from './service/processes.ts';
import { tempDirectory } from './temp.ts';

const BIN = '/usr/lib/postgresql/15/bin';
const PGBOUNCER = '/usr/sbin/pgbouncer';
const run = promisify(execFile);

/** Whether the machine has PostgreSQL and PgBouncer. Without them tests are skipped, not in CI. */
export function hasPostgres(): boolean {
  const isPresent = existsSync(join(BIN, 'postgres')) && existsSync(PGBOUNCER);
  if (isPresent) return true;
  const missing = 'PostgreSQL 15 and PgBouncer are not installed';
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.log(`SKIPPED: ${missing}: apt-get install postgresql-15 pgbouncer`);
  return false;
}

export type Cluster = AsyncDisposable & {
  port: number;
  /** Without a database. */
  url: string;
  /** A database that is removed with the cluster; returns its URL. */
  createDatabase(): Promise<string>;
  /** The URL of a database through PgBouncer in transaction mode. */
  pooled(url: string): string;
  /** kill -9 of all its processes, as a crash of its machine. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Copies the pair, which new connections use. */
  useCertificate(files: TlsFiles): Promise<void>;
};

export type ClusterOptions = {
  /** Speaks TLS with the pair. */
  tls?: TlsFiles;
  /** Of pg_hba.conf; by default all of this machine are trusted. */
  access?: string;
};

/** `await using cluster = await startPostgres()`. */
export async function startPostgres({ tls, access }: ClusterOptions = {}): Promise<Cluster> {
  const temp = tempDirectory('tabern-pg-', memoryDirectory());
  const account = accountOf();
  if (account) chownSync(temp.path, account.uid, account.gid);
  const dir = join(temp.path, 'data');
  const port = await freePort();
  const as = { ...account, cwd: temp.path };
  const initdb = [
    '-D',
    dir,
    '-U',
    'tabern',
    '--no-sync',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    // the order of texts of a language, as most servers have it: ours is that of bytes
    '--locale-provider=icu',
    '--icu-locale=en-US',
  ];
  await run(join(BIN, 'initdb'), initdb, as);
  const ssl = tls ? 'ssl = on\n' : '';
  writeFileSync(join(dir, 'postgresql.auto.conf'), settings(port, temp.path) + ssl);
  if (access !== undefined) writeFileSync(join(dir, 'pg_hba.conf'), access);
  const copy = ({ cert, key }: TlsFiles) => {
    for (const [name, { path }] of [
      ['server.crt', cert],
      ['server.key', key],
    ] as const) {
      const own = join(dir, name);
      writeFileSync(own, readFileSync(path), { mode: 0o600 });
      if (account) chownSync(own, account.uid, account.gid);
    }
  };
  if (tls) copy(tls);
  const control = (...args: string[]) => run(join(BIN, 'pg_ctl'), ['-D', dir, '-w', ...args], as);
  const start = async () => {
    await control('-l', join(temp.path, 'log'), 'start');
  };
  await start();
  const url = `postgres://tabern@127.0.0.1:${port}`;
  const pooler = await startPgBouncer(temp.path, port, account);
  let count = 0;
  return {
    port,
    url,
    async createDatabase() {
      count += 1;
      const sql = postgres(`${url}/postgres`, { max: 1, onnotice: () => {} });
      try {
        await sql.unsafe(`CREATE DATABASE test_${count}`);
      } finally {
        await sql.end();
      }
      return `${url}/test_${count}`;
    },
    pooled: (direct) => direct.replace(`:${port}/`, `:${pooler.port}/`),
    async kill() {
      const [pid] = readFileSync(join(dir, 'postmaster.pid'), 'utf8').split('\n');
      const all = familyOf(Number(pid));
      signalAll(all, 'SIGKILL'); // its first process first: it starts no other one
      // the next start would take a process that is not reaped yet for a server
      await until(() => all.every((one) => !existsSync(`/proc/${one.pid}`)));
    },
    async stop() {
      await control('stop', '-m', 'fast');
    },
    start,
    async useCertificate(files) {
      copy(files);
      await control('reload');
    },
    async [Symbol.asyncDispose]() {
      pooler.stop();
      await control('stop', '-m', 'immediate').catch(() => {}); // a test may have stopped it
      await temp[Symbol.asyncDispose]();
    },
  };
}

/** Nothing is synced: no test here cuts the power. */
function settings(port: number, socketDir: string): string {
  return `listen_addresses = '127.0.0.1'
port = ${port}
unix_socket_directories = '${socketDir}'
fsync = off
full_page_writes = off
shared_buffers = 32MB
max_connections = 200
deadlock_timeout = 200ms
`;
}

type Account = { uid: number; gid: number };

function accountOf(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function startPgBouncer(folder: string, to: number, account: Account | undefined) {
  const port = await freePort();
  const dir = join(folder, 'pgbouncer');
  mkdirSync(dir);
  writeFileSync(join(dir, 'users.txt'), '"tabern" ""\n');
  writeFileSync(
    join(dir, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${to}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(dir, 'users.txt')}
pool_mode = transaction
max_client_conn = 200
default_pool_size = 30
`,
  );
  if (account) chownSync(dir, account.uid, account.gid);
  const child = spawn(PGBOUNCER, [join(dir, 'pgbouncer.ini')], { ...account, stdio: 'ignore' });
  child.unref(); // it ends with the cluster, which ends before this process
  await accepting(port);
  return { port, stop: () => child.kill('SIGKILL') };
}

async function accepting(port: number): Promise<void> {
  for (;;) {
    const sql = postgres(`postgres://tabern@127.0.0.1:${port}/postgres`, {
      max: 1,
      prepare: false,
      connect_timeout: 1,
      onnotice: () => {},
    });
    try {
      await sql.unsafe('SELECT 1');
      return;
    } catch {
      await sleep(50);
    } finally {
      await sql.end({ timeout: 0 });
    }
  }
}
