/** Ctrl-C in a backup or a restore leaves no files, and prints a message. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { EXIT } from '../../../../gateway/process/exit-codes.ts';
import { Channel } from '../../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../../proto/rpc/services.ts';
import { until } from '../../../support/poll.ts';
import { type Run, startCore, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/operator/backup-ended');

/** In bytes: reading it takes a while, and it takes no room on the disk. */
const LARGE = 1 << 29;
const SHA256 = hashOfZeros(LARGE);

/** A data directory with one large blob of zeros. */
async function largeData(path: string): Promise<string> {
  const dataDir = join(path, 'data');
  {
    await using _ = await startCore({ TABERN_DATA: dataDir });
  }
  const id = newId();
  writeFileSync(join(dataDir, 'blobs', id), '');
  truncateSync(join(dataDir, 'blobs', id), LARGE);
  const db = new Sqlite(join(dataDir, 'tabern.db'));
  db.prepare(`INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
      SELECT ?, id, 'BUILD_ARCHIVE', ?, ?, ? FROM projects LIMIT 1`).run(
    ...[id, LARGE, SHA256, Date.now()],
  );
  db.close();
  return dataDir;
}

function hashOfZeros(size: number): string {
  const hash = createHash('sha256');
  const part = Buffer.alloc(1 << 20);
  for (let bytes = 0; bytes < size; bytes += part.length) hash.update(part);
  return hash.digest('hex');
}

/** Sends the signal when `isThere` holds; returns the outcome of the command. */
async function endedAt(run: Run, isThere: () => boolean, signal: NodeJS.Signals) {
  await until(() => {
    if (run.child.exitCode !== null) throw new Error(`it ended before: ${run.said.err}`);
    return isThere();
  });
  run.child.kill(signal);
  return await run.ended;
}

const isPart = (name: string) => name.endsWith('.part');

test('the next start removes the files of a killed backup', async () => {
  await using dir = tempDirectory();
  const dataDir = await largeData(dir.path);
  const left = join(dataDir, 'backup');
  const run = tabern(['backup', join(dir.path, 'b.tar')], { TABERN_DATA: dataDir });
  await endedAt(run, () => existsSync(join(left, 'tabern.db')), 'SIGKILL');
  assert.ok(existsSync(left));
  await using _ = await startCore({ TABERN_DATA: dataDir });
  assert.not.ok(existsSync(left));
});

test('an aborted backup leaves no file, also in the data directory', async () => {
  await using temp = tempDirectory();
  const dataDir = await largeData(temp.path);
  const before = readdirSync(dataDir).sort();
  const start = () => tabern(['backup', join(temp.path, 'b.tar.zst')], { TABERN_DATA: dataDir });
  const isHashing = () => existsSync(join(dataDir, 'backup'));
  const isWriting = () => readdirSync(temp.path).some(isPart);
  for (const [isThere, signal] of [
    [isHashing, 'SIGTERM'],
    [isWriting, 'SIGINT'],
  ] as const) {
    const { code, out, err } = await endedAt(start(), isThere, signal);
    assert.equal([code, out], [EXIT.failed, ''], err);
    assert.match(err, `\ntabern: ended by ${signal}: no backup was written\n`);
    assert.equal(readdirSync(temp.path), ['data']);
    assert.equal(readdirSync(dataDir).sort(), before);
  }
});

test('an aborted backup of a running core ends in core, too: the next one starts', async () => {
  await using temp = tempDirectory();
  const dataDir = await largeData(temp.path);
  await using _ = await startCore({ TABERN_DATA: dataDir });
  const run = tabern(['backup', join(temp.path, 'b.tar.zst')], { TABERN_DATA: dataDir });
  const isWriting = () => readdirSync(temp.path).some(isPart);
  const { code, err } = await endedAt(run, isWriting, 'SIGINT');
  assert.is(code, EXIT.failed, err);
  assert.match(err, 'tabern: ended by SIGINT: no backup was written\n');
  assert.equal(readdirSync(temp.path), ['data']);
  await until(() => !existsSync(join(dataDir, 'backup')));
  using channel = new Channel(`unix:${dataDir}/core.sock`, credentials.createInsecure());
  const token = readFileSync(join(dataDir, 'keys', 'operator.token'), 'utf8').trim();
  const call = { metadata: { authorization: `Bearer ${token}` } };
  const { operators } = remoteClients(channel);
  for await (const { part } of operators.createBackup({ withMasterKey: false }, call)) {
    assert.is(part?.$case, 'start');
    break;
  }
});

test('an aborted restore leaves nothing, and an existing directory empty', async () => {
  await using temp = tempDirectory();
  const dataDir = await largeData(temp.path);
  const file = join(temp.path, 'b.tar.zst');
  const taken = await tabern(['backup', file], { TABERN_DATA: dataDir }).ended;
  assert.is(taken.code, 0, taken.err);
  const made = join(temp.path, 'made');
  const given = tempDirectory();
  await using _ = given;
  for (const target of [made, given.path]) {
    const run = tabern(['restore', file, '--data', target]);
    const blobs = join(target, '.restore', 'blobs');
    const isUnpacking = () => existsSync(blobs) && readdirSync(blobs).length > 0;
    const { code, out, err } = await endedAt(run, isUnpacking, 'SIGINT');
    assert.equal([code, out], [EXIT.failed, ''], err);
    assert.match(err, 'tabern: ended by SIGINT: nothing was restored\n');
  }
  assert.not.ok(existsSync(made));
  assert.equal(readdirSync(given.path), []);
});

test.run();
