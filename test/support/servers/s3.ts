/**
 * A real S3 server for tests: OpenStack Swift with its s3api and tempauth, of Debian's packages. It
 * verifies signatures, hashes, regions and clocks. It ends with the test process at the latest.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { openBucket } from '../../../core/files/s3/bucket.ts';
import { S3Error } from '../../../core/files/s3/errors.ts';
import { environmentOf, type S3Place } from '../../../core/files/s3/place.ts';
import { until } from '../poll.ts';
import { freePort } from '../port.ts';
import { familyOf, signalAll } from '../service/processes.ts';
import { tempDirectory, writeTree } from '../temp.ts';

const SCRIPT = join(import.meta.dirname, 's3-server.py');
/** Debian's own: another Python lacks Debian's modules. */
const PYTHON = '/usr/bin/python3';
const ACCESS_KEY_ID = 'test:tester';
const SECRET_ACCESS_KEY = 'secret-of-the-tests';
export const S3_REGION = 'us-east-1';
/** Ours: a loaded machine. */
const START_MS = 180_000;

export type S3Server = AsyncDisposable & {
  /** http://127.0.0.1:port */
  endpoint: string;
  /** A new, empty bucket. */
  bucket(): Promise<S3Place>;
  /** The settings of core for the place. */
  settings(place: S3Place): Record<string, string>;
  /** Stops all its processes without ending them, as a network that drops packets would. */
  pause(): void;
  resume(): void;
};

/** Starts a server; dispose of it. `isShared`: this process may end before it is disposed. */
export async function startS3({ isShared = false } = {}): Promise<S3Server> {
  await using opened = new AsyncDisposableStack();
  const dir = opened.use(tempDirectory('tabern-swift-'));
  const ports = await configure(dir.path);
  const cache = spawn(
    'memcached',
    ['-l', '127.0.0.1', '-p', String(ports.cache), '-U', '0', '-u', userInfo().username],
    { stdio: 'ignore' },
  );
  opened.defer(() => ended(cache));
  const swift = spawn(PYTHON, [SCRIPT, dir.path], { stdio: ['ignore', 'pipe', 'pipe'] });
  opened.defer(() => ended(swift));
  // its servers end with it
  const end = () => void [swift, cache].map((child) => child.kill('SIGKILL'));
  process.once('exit', end);
  opened.defer(() => void process.off('exit', end));
  let said = '';
  const record = (text: Buffer) => (said = (said + text).slice(-4_000));
  swift.stdout.on('data', record);
  swift.stderr.on('data', record);
  const endpoint = `http://127.0.0.1:${ports.proxy}`;
  const isUp = async () => {
    if (swift.exitCode !== null) throw new Error(`Swift ended: ${said}`);
    const answer = await fetch(`${endpoint}/healthcheck`).catch(() => undefined);
    return answer?.ok ?? false;
  };
  await until(isUp, START_MS);
  if (isShared) {
    for (const child of [cache, swift]) child.unref();
    for (const stream of [swift.stdout, swift.stderr]) (stream as Socket).unref();
  }
  const signal = (name: NodeJS.Signals) => signalAll(familyOf(Number(swift.pid)), name);
  const moved = opened.move();
  return {
    endpoint,
    bucket: () => newBucket(endpoint),
    settings: environmentOf,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async [Symbol.asyncDispose]() {
      signal('SIGCONT');
      await moved.disposeAsync();
    },
  };
}

/** A new, empty bucket of the server. */
export async function newBucket(endpoint: string): Promise<S3Place> {
  const place = placeAt(endpoint, `b-${randomUUID()}`);
  using bucket = openBucket(place);
  // the storage servers may start after the proxy
  const create = () =>
    bucket.create().then(
      () => true,
      (error: unknown) => {
        if (error instanceof S3Error && error.status >= 500) return false;
        throw error;
      },
    );
  await until(create, START_MS);
  return place;
}

function placeAt(endpoint: string, bucket: string): S3Place {
  const keys = { accessKeyId: ACCESS_KEY_ID, secretAccessKey: SECRET_ACCESS_KEY };
  return { bucket, prefix: 'blobs/', endpoint, region: S3_REGION, style: 'path', ...keys };
}

type Ports = Record<'proxy' | 'account' | 'container' | 'object' | 'cache', number>;

/** Writes the configuration; returns the ports. */
async function configure(dir: string): Promise<Ports> {
  const [proxy, account, container, object, cache] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const ports = { proxy, account, container, object, cache };
  const storage = (name: 'account' | 'container' | 'object') => `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${ports[name]}
workers = 0
user = ${userInfo().username}
swift_dir = ${dir}
devices = ${dir}/devices
mount_check = false
log_level = WARNING
[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
`;
  mkdirSync(join(dir, 'devices', 'disk'), { recursive: true });
  writeTree(dir, {
    'swift.conf': `[swift-hash]\nswift_hash_path_suffix = s\nswift_hash_path_prefix = p\n`,
    'account.port': String(account),
    'container.port': String(container),
    'object.port': String(object),
    'account.conf': storage('account'),
    'container.conf': storage('container'),
    'object.conf': storage('object'),
    'proxy.conf': proxyConf(dir, ports),
  });
  return ports;
}

/** Without `cache` it answers 500; with its short times, a busy machine makes it suspect a disk. */
function proxyConf(dir: string, { proxy, cache }: Ports): string {
  return `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${proxy}
workers = 0
user = ${userInfo().username}
swift_dir = ${dir}
log_level = WARNING
[pipeline:main]
pipeline = catch_errors healthcheck cache s3api tempauth slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_limit = 1000000
conn_timeout = 20
node_timeout = 60
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${cache}
[filter:s3api]
use = egg:swift#s3api
location = ${S3_REGION}
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${SECRET_ACCESS_KEY} .admin
user_test_reader = ${SECRET_ACCESS_KEY}
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
`;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}
