/** Values that a caller gave become values that PostgreSQL can store. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sqlText } from '../../../../core/store/postgres/engine/sql-text.ts';

const text = suite('core/store/postgres/sql-text');

text('U+0000 becomes U+FFFD in a text and in each text of a list', () => {
  const { values } = sqlText('SELECT 1 WHERE id = ANY(@ids::TEXT[]) AND name = @name');
  assert.equal(values([{ ids: ['a\0b', 'c', undefined], name: '\0' }]), [
    ['a\ufffdb', 'c', null],
    '\ufffd',
  ]);
  assert.equal(sqlText('SELECT ?, ?').values([['\0'], 7]), [['\ufffd'], 7]);
});

text('bytes are kept as they are', () => {
  const bytes = new Uint8Array([0, 1]);
  assert.is(sqlText('SELECT ?').values([bytes])[0], bytes);
});

text.run();
