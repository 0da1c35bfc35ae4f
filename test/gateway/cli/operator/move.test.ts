/** `tabern move --to` as an operator calls it, with a real PostgreSQL. */
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { move } from '../../../../gateway/cli/operator/move.ts';
import { EXIT, type Exit } from '../../../../gateway/process/exit-codes.ts';
import { must } from '../../../../proto/common/must.ts';
import { ENGINES, openBench } from '../../../core/store/engines.ts';
import { freePort } from '../../../support/port.ts';
import { hasPostgres, startPostgres } from '../../../support/postgres.ts';
import { tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/operator/move');

test('a data directory of another user is named, with its user', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'lock.db');
  const error = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', path });
  const env = { TABERN_DATA: dir.path, TABERN_BLOBS: 's3://bucket' };
  const moves = { env, moveBlobs: () => Promise.reject(error), moveToPostgres: unused };
  const said = await move({}, moves).then(
    () => undefined,
    (one: unknown) => one as Exit,
  );
  assert.is(said?.code, EXIT.config);
  assert.match(said?.message ?? '', `cannot use the data directory ${dir.path}`);
});

function unused(): never {
  throw new Error('no database was to be moved');
}

if (hasPostgres()) {
  test('a move says what is wrong in one sentence, then moves once', async () => {
    await using bench = await openBench(must(ENGINES[0], 'SQLite'));
    await bench.publish(await bench.project('moved'));
    const on = { TABERN_DATA: bench.dir };
    const to = (url: string) => tabern(['move', '--to', url], on).ended;
    const away = `postgres://tabern:verysecret@127.0.0.1:${await freePort()}/none`;
    await bench.store.close();
    const nowhere = await to(away);
    assert.is(nowhere.code, 1);
    assert.match(
      nowhere.err,
      /^tabern: .*names a server that does not answer: .*\(ECONNREFUSED\)$/m,
    );
    assert.not.match(nowhere.err, /verysecret|\n {4}at /);
    await using cluster = await startPostgres();
    const url = await cluster.createDatabase();
    const moved = await to(url);
    assert.is(moved.code, 0, moved.err);
    assert.match(moved.out, /^\d+ rows of \d+ tables$/m);
    const again = await to(url);
    const started = await tabern(['serve'], { ...on, TABERN_DATABASE_URL: away }).ended;
    assert.is(started.code, 70);
    assert.match(started.err, /^tabern: TABERN_DATABASE_URL names a server that does not answer/m);
    assert.is(again.code, 2);
    assert.match(again.err, 'has no database of SQLite');
    const doctor = await tabern(['doctor'], { ...on, TABERN_DATABASE_URL: url }).ended;
    assert.match(doctor.out, /^ok +database +in PostgreSQL$/m);
    const target = ['backup', `${bench.dir}/backup.tar`];
    const backup = await tabern(target, { ...on, TABERN_DATABASE_URL: url }).ended;
    assert.is(backup.code, 2);
    assert.match(backup.err, /pg_dump/);
  });
}

test.run();
