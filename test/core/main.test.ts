import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../core/common/ids.ts';
import { startCore } from '../../core/main.ts';
import { ConfigError } from '../../proto/common/env.ts';
import { openLog } from '../../proto/common/log.ts';
import { HealthService } from '../../proto/gen/grpc/health/v1/health.pb.ts';
import {
  ServerReflectionClient,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '../../proto/gen/grpc/reflection/v1/reflection.pb.ts';
import { Channel, remote } from '../../proto/rpc/remote.ts';
import { remoteClients } from '../../proto/rpc/services.ts';
import { errorOf, faultOf } from '../support/fault.ts';
import { until } from '../support/poll.ts';
import { tempDirectory } from '../support/temp.ts';
import { boot, configOn, KEY } from './boot.ts';

const test = suite('core/main');
const log = openLog({ role: 'core', level: 'silent' });
const keyed = (key: string) => ({ metadata: { 'x-svc-api-key': key } });

test('the first start creates a project and a key, shown until its first use', async () => {
  await using dir = tempDirectory();
  const config = configOn(join(dir.path, 'deep', 'data'));
  const first = await startCore(config, log);
  const shown = first.firstStart;
  assert.match(shown?.apiKey ?? '', /^svc_/);
  assert.is(shown?.isPreset, false);
  await first.close();
  const second = await startCore(config, log);
  assert.equal(second.firstStart, shown, 'nobody has used it');
  const kept = join(config.dataDir, 'keys/first.key');
  assert.not(readFileSync(kept, 'utf8').includes(shown?.apiKey ?? ''), 'sealed');
  const { projects } = await second.clients.projects.listProjects({}, keyed(shown?.apiKey ?? ''));
  await until(() => !existsSync(kept));
  assert.equal(
    projects.map(({ id, name, concurrency }) => ({ id, name, concurrency })),
    [{ id: shown?.projectId, name: 'default', concurrency: 25 }],
  );
  await second.close();
  const bytes = readFileSync(join(config.dataDir, 'tabern.db'));
  assert.not(bytes.includes(shown?.apiKey ?? ''), 'only its hash is stored');

  await using again = await startCore(config, log);
  assert.is(again.firstStart, undefined);
  const still = await again.clients.projects.listProjects({}, keyed(shown?.apiKey ?? ''));
  assert.is(still.projects[0]?.id, shown?.projectId);
});

test('a first key whose file cannot be removed is accepted nevertheless', async () => {
  await using dir = tempDirectory();
  const config = configOn(dir.path);
  await using core = await startCore(config, log);
  const kept = join(config.dataDir, 'keys/first.key');
  rmSync(kept);
  mkdirSync(kept); // neither read nor removed as a file
  const { projects } = await core.clients.projects.listProjects(
    {},
    keyed(core.firstStart?.apiKey ?? ''),
  );
  assert.is(projects[0]?.id, core.firstStart?.projectId);
});

test('a preset key belongs to the project, and a later one is added', async () => {
  await using dir = tempDirectory();
  const first = await startCore(configOn(dir.path, { TABERN_API_KEY: 'x'.repeat(24) }), log);
  assert.is(first.firstStart?.isPreset, true);
  await first.close();
  await using second = await startCore(configOn(dir.path, { TABERN_API_KEY: 'y'.repeat(30) }), log);
  assert.is(second.firstStart, undefined);
  for (const key of ['x'.repeat(24), 'y'.repeat(30)]) {
    const { projects } = await second.clients.projects.listProjects({}, keyed(key));
    assert.is(projects[0]?.id, first.firstStart?.projectId);
  }
});

test('another process is refused while one runs on the directory', async () => {
  await using app = await boot();
  const script = `
    const { startCore } = await import('${new URL('../../core/main.ts', import.meta.url)}');
    const { readCoreConfig } = await import('${new URL('../../core/config.ts', import.meta.url)}');
    const { openLog } = await import('${new URL('../../proto/common/log.ts', import.meta.url)}');
    await startCore(readCoreConfig({ TABERN_DATA: ${JSON.stringify(app.dir)} }),
      openLog({ role: 'core', level: 'silent' })).catch((e) => console.log(e.name, e.message));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  assert.match(stdout, /^ConfigError another tabern runs on this data directory/);
  const { projects } = await app.clients.projects.listProjects({}, app.asProject);
  assert.is(projects.length, 1, 'the first goes on');
});

test('a data directory of a newer version is refused', async () => {
  await using app = await boot();
  await app.core.close();
  const script = `
    const { default: Sqlite } = await import('better-sqlite3');
    const db = new Sqlite(${JSON.stringify(join(app.dir, 'tabern.db'))});
    db.exec("INSERT INTO migrations (number, name) VALUES (9999, '9999_future.sql')");`;
  spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: new URL('../..', import.meta.url),
  });
  const error = await errorOf(startCore(configOn(app.dir), log));
  assert.instance(error, ConfigError);
  assert.match((error as Error).message, /newer tabern/);
});

test('a database that cannot be opened fails the start, and is not a failed store', async () => {
  await using dir = tempDirectory();
  mkdirSync(join(dir.path, 'tabern.db'));
  const onFatal = assert.unreachable;
  const error = await errorOf(startCore(configOn(dir.path), log, { onFatal }));
  assert.match((error as Error).message, /unable to open database file|EISDIR/);
});

test('a refused first start creates no key', async () => {
  await using dir = tempDirectory();
  const config = configOn(dir.path);
  mkdirSync(join(dir.path, 'core.sock')); // nothing can listen there
  await errorOf(startCore(config, log));
  rmdirSync(join(dir.path, 'core.sock'));
  await using core = await startCore(config, log);
  assert.match(core.firstStart?.apiKey ?? '', /^svc_/);
});

test('secrets and the socket are accessible to their owner only', async () => {
  await using app = await boot();
  const files = ['keys/master.key', 'keys/runner.token', 'keys/gateway.token', 'core.sock'];
  for (const file of files) {
    assert.is(statSync(join(app.dir, file)).mode & 0o777, 0o600, file);
  }
  assert.is(statSync(join(app.dir, 'keys')).mode & 0o777, 0o700);
});

test('the database is accessible to its owner only, also in a shared directory', async () => {
  await using dir = tempDirectory();
  chmodSync(dir.path, 0o755);
  const config = configOn(dir.path, { TABERN_API_KEY: KEY });
  await using core = await startCore(config, log);
  assert.ok(core.address);
  for (const name of readdirSync(dir.path)) {
    assert.is(statSync(join(dir.path, name)).mode & 0o077, 0, name);
  }
});

test('the socket serves health and reflection, and a stale socket file is replaced', async () => {
  await using dir = tempDirectory();
  writeFileSync(join(dir.path, 'core.sock'), 'left behind');
  const config = configOn(dir.path, { TABERN_API_KEY: KEY });
  await using core = await startCore(config, log);
  using channel = new Channel(core.address, credentials.createInsecure());
  const { projects } = await remoteClients(channel).projects.listProjects({}, keyed(KEY));
  assert.is(projects.length, 1);

  const health = remote(HealthService, channel);
  assert.equal(await health.check({ service: '' }), { status: 'SERVING' });
  const named = await health.check({ service: 'tabern.v1.ContextService' });
  assert.is(named.status, 'SERVING');
  assert.is((await faultOf(health.check({ service: 'none' }))).reason, 'RESOURCE_NOT_FOUND');

  using reflection = reflectionClient(core.address);
  const { ask } = reflection;
  const services = await ask({ $case: 'listServices', value: '' });
  assert.match(JSON.stringify(services), /"tabern\.v1\.InvocationService"/);
  const file = await ask({
    $case: 'fileContainingSymbol',
    value: 'tabern.v1.InvocationService.InvokeFunction',
  });
  assert.is(file?.$case, 'fileDescriptorResponse');
  const missing = await ask({ $case: 'fileByFilename', value: 'none.proto' });
  assert.is(missing?.$case, 'errorResponse');
});

test('a data directory with a too long socket path is refused', async () => {
  await using dir = tempDirectory();
  const config = configOn(join(dir.path, 'x'.repeat(100)));
  const error = await errorOf(startCore(config, log));
  assert.instance(error, ConfigError);
});

test('old files without a row are removed at start', async () => {
  await using app = await boot();
  const kept = await app.upload('archive');
  const [old, young, part] = [newId(), newId(), `${newId()}.part`];
  for (const name of [old, young, part]) writeFileSync(join(app.dir, 'blobs', name), 'x');
  const past = new Date(app.clock.now() - 2 * 3_600_000);
  for (const name of [old, kept]) await utimes(join(app.dir, 'blobs', name), past, past);
  await app.core.close();
  const now = app.clock.now;
  await using again = await startCore(configOn(app.dir), log, { now });
  assert.ok(again.address);
  const there = (name: string) =>
    statSync(join(app.dir, 'blobs', name), { throwIfNoEntry: false }) !== undefined;
  assert.equal([kept, young, old, part].map(there), [true, true, false, false]);
});

test.run();

/** As grpcurl does it: one stream, one question. */
function reflectionClient(address: string) {
  const client = new ServerReflectionClient(address, credentials.createInsecure());
  return {
    async ask(messageRequest: ServerReflectionRequest['messageRequest']) {
      const stream = client.serverReflectionInfo();
      stream.write({ host: '', messageRequest });
      stream.end();
      for await (const answer of stream) {
        return (answer as ServerReflectionResponse).messageResponse;
      }
      throw new Error('no answer');
    },
    [Symbol.dispose]: () => client.close(),
  };
}
