/** The operator's commands with a running and a stopped core. */
import { existsSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore, tabern } from '../../support/service/command.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/cli/operate');

async function open() {
  await using cleanup = new AsyncDisposableStack();
  const temp = cleanup.use(tempDirectory());
  const dataDir = join(temp.path, 'data');
  const core = cleanup.use(await startCore({ TABERN_DATA: dataDir }));
  const run = (...argv: string[]) => tabern(argv, { TABERN_DATA: dataDir }).ended;
  const json = async (...argv: string[]) => {
    const { code, out, err } = await run(...argv, '--json');
    assert.is(code, 0, err);
    return JSON.parse(out);
  };
  const kept = cleanup.move();
  const close = () => kept.disposeAsync();
  return { core, dataDir, path: temp.path, run, json, [Symbol.asyncDispose]: close };
}

test('the command line creates a project and a key, and revokes the key', async () => {
  await using app = await open();
  const made = await app.run('projects', 'create', 'shop', '--sessions', '3');
  assert.is(made.code, 0, made.err);
  assert.match(made.out, /^[0-9a-f-]{36}\n$/);
  const again = await app.run('projects', 'create', 'shop');
  assert.equal([again.code, again.out], [1, '']);
  assert.match(again.err, /^tabern: A project named "shop" already exists\.\n$/);

  const { key, id } = await app.json('keys', 'create', 'shop', '--name', 'ci');
  assert.match(key, /^svc_/);
  const revoked = await app.run('keys', 'revoke', key);
  assert.is(revoked.code, 0, revoked.err);
  assert.not.ok((revoked.out + revoked.err).includes(key));
  const list = await app.run('keys', 'list', '--project', 'shop');
  assert.match(list.out, new RegExp(`^${id}  ci +${made.out.trim()} .*  revoked `, 'm'));
  assert.not.ok(list.out.includes(key));

  const limits = await app.json('projects', 'limits', 'shop', '--queue', '7');
  const quotas = { contexts: 10_000, contextMib: 20_480, downloadMib: 20_480 };
  const stored = { ...quotas, recordingMib: 20_480, uploadMib: 10_240, logMib: 10_240 };
  assert.equal(limits.limits, { sessions: 3, invocations: 25, queue: 7, ...stored });
  const set = await app.json('projects', 'limits', 'shop', '--context-mib', '9');
  assert.is(set.limits.contextMib, 9);
  assert.match(
    (await app.run('projects', 'limits', 'shop', '--upload-mib', 'x')).err,
    /--upload-mib/,
  );
  assert.is((await app.run('projects', 'limits', 'shop', '--queue', 'x')).code, 2);
  const usage = await app.run('projects', 'usage', 'default');
  assert.match(usage.out, /^browser minutes +0$/m);
  assert.match(usage.out, /^uploads +0 B of 10240 MiB$/m);
  const projects = await app.json('projects', 'list');
  assert.equal(
    projects.map(({ name }: { name: string }) => name),
    ['default', 'shop'],
  );
  const none = await app.run('projects', 'usage', 'none');
  assert.equal([none.code, none.err], [1, 'tabern: Project not found.\n']);
});

test('backups of a running and of a stopped core restore', async () => {
  await using app = await open();
  const { key } = await app.json('keys', 'create', 'default');
  const file = join(app.path, 'b.tar.zst');
  const taken = await app.run('backup', file, '--with-keys');
  assert.equal([taken.code, taken.out], [0, `${file}\n`], taken.err);
  assert.is(statSync(file).mode & 0o777, 0o600);
  const missing = join(app.path, 'no', 'b.tar');
  const nowhere = await app.run('backup', missing);
  assert.is(nowhere.code, 2);
  assert.match(nowhere.err, /cannot write into/);
  await app.core[Symbol.asyncDispose]();
  const bare = join(app.path, 'bare.tar');
  const offline = await app.run('backup', bare);
  assert.is(offline.code, 0, offline.err);
  assert.match(offline.err, /reading the directory itself/);
  assert.match(offline.err, /the master key is not included/);

  const content = readFileSync(bare);
  const again = await app.run('backup', bare);
  assert.is(again.code, 2);
  assert.match(again.err, /bare\.tar exists: .*--force/);
  assert.equal(readFileSync(bare), content);
  const forced = await app.run('backup', bare, '--force');
  assert.is(forced.code, 0, forced.err);

  const unwritten = join(app.path, 'unwritten.tar');
  const elsewhere = await app.run('backup', unwritten, '--core', 'unix:/nonexistent/core.sock');
  assert.is(elsewhere.code, 69, 'not that of the local directory');
  assert.match(elsewhere.err, /core cannot be reached at unix:\/nonexistent/);

  const full = await app.run('restore', file);
  assert.is(full.code, 2);
  assert.match(full.err, /is not empty/);
  const copy = join(app.path, 'copy');
  const restored = await app.run('restore', file, '--data', copy);
  assert.equal([restored.code, restored.out], [0, `${copy}\n`], restored.err);
  const other = join(app.path, 'other');
  const masterKey = join(app.dataDir, 'keys', 'master.key');
  const keyless = await app.run('restore', bare, '--data', other, '--master-key', masterKey);
  assert.is(keyless.code, 0, keyless.err);
  for (const dir of [copy, other]) {
    await using _ = await startCore({ TABERN_DATA: dir });
    const { out } = await tabern(['keys', 'list', '--data', dir]).ended;
    assert.ok(out.includes(key.slice(4, 12)), out);
  }
  truncateSync(file, statSync(file).size >> 1);
  const half = await app.run('restore', file, '--data', join(app.path, 'half'));
  assert.is(half.code, 2);
  assert.match(half.err, /^tabern: this is not a whole backup/m);
  assert.not.ok(existsSync(join(app.path, 'half')));
});

test('without a core, or without its token, the error has the fix', async () => {
  await using app = await open();
  const token = join(app.dataDir, 'keys', 'operator.token');
  const wrong = { TABERN_DATA: app.dataDir, TABERN_OPERATOR_TOKEN: 'x'.repeat(43) };
  const refused = await tabern(['keys', 'list'], wrong).ended;
  assert.is(refused.code, 1);
  assert.match(refused.err, /refused the operator's token: set TABERN_OPERATOR_TOKEN/);
  assert.not.ok(refused.err.includes(readFileSync(token, 'utf8').trim()));
  await app.core[Symbol.asyncDispose]();
  const gone = await app.run('keys', 'list');
  assert.is(gone.code, 69);
  assert.match(gone.err, /core cannot be reached at unix:.*is the service running\?/);
  const none = await tabern(['keys', 'list'], { TABERN_DATA: join(app.path, 'none') }).ended;
  assert.is(none.code, 69);
  assert.match(none.err, /set --data to the data directory/);
});

test.run();
