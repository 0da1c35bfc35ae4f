/** Notices of triggers, by which a core counts ends: only those of what was committed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Notice } from '../../../../core/store/postgres/engine/connection.ts';
import { Pool } from '../../../../core/store/postgres/engine/pool.ts';
import {
  type Operation,
  openRunner,
  type Runner,
} from '../../../../core/store/postgres/engine/transaction.ts';
import { urlOf } from '../../../support/engine.ts';
import { errorOf } from '../../../support/fault.ts';
import { hasPostgres } from '../../../support/postgres.ts';

const test = suite('core/store/postgres/notices');
const TELL = `DO $$ BEGIN RAISE NOTICE USING MESSAGE = 'end', DETAIL = '["interrupted"]'; END $$`;

async function open(name: string) {
  const notices: Notice[] = [];
  const pool = new Pool({ url: await urlOf(name), isPooled: false, name: 'tabern test' });
  const runner = openRunner({
    pool,
    beginOf: () => 'BEGIN',
    needsTransactions: false,
    lock: () => {},
    onCommit: () => {},
    crashPoint: () => {},
    onSync: () => {},
    onNotice: (notice) => void notices.push(notice),
  });
  return { runner, notices, [Symbol.asyncDispose]: () => pool.close() };
}

/** Tells an end, then fails with the errors, one for each try. */
function telling({ tx }: Runner, errors: Error[]): Operation {
  function* start() {
    yield tx.send(TELL, []);
    const error = errors.shift();
    if (error) throw error;
    return 'done';
  }
  return { start: start as unknown as Operation['start'], isTransaction: true };
}

if (hasPostgres()) {
  test('an operation that is repeated tells its ends once, a failed one none', async () => {
    await using bench = await open('repeated');
    const { runner, notices } = bench;
    const conflict = () => Object.assign(new Error('a conflict'), { code: '40001' });
    assert.is(await runner.run('one', telling(runner, [conflict(), conflict()]), []), 'done');
    assert.equal(
      notices.map(({ message, detail }) => [message, detail]),
      [['end', '["interrupted"]']],
    );
    await errorOf(runner.run('two', telling(runner, [new Error('a bug')]), []));
    assert.is(notices.length, 1);
    assert.is(await runner.run('three', telling(runner, []), []), 'done');
    assert.is(notices.length, 2);
  });
}

test.run();
