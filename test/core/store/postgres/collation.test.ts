/** Texts are compared and ordered by their bytes, whatever the language of the database. */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { openBench } from '../engines.ts';

const test = suite('core/store/postgres/collation');

if (hasPostgres()) {
  test('every column of text has the order of bytes', async () => {
    await using bench = await openBench({ name: 'postgres', open: openOnPostgres });
    const sql = postgres(await urlOf(bench.dir), { max: 1 });
    try {
      const [order] = await sql`SELECT 'a' < 'B' AS "isOfLanguage"`;
      assert.is(order?.['isOfLanguage'], true, 'the database of the tests has another order');
      const columns = await sql`
        SELECT table_name || '.' || column_name AS name, collation_name AS collation
        FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text'`;
      assert.ok(columns.length > 100);
      // a name of a migration is only shown
      const others = columns.filter(
        ({ name, collation }) => collation !== 'C' && name !== 'migrations.name',
      );
      assert.equal(
        others.map(({ name }) => name),
        [],
      );
    } finally {
      await sql.end();
    }
  });
}

test.run();
