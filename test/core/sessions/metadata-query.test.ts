import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseQuery } from '../../../core/sessions/metadata-query.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('core/sessions/metadata-query');

const GOOD: [string, string[], string][] = [
  ["user_metadata['stagehand']:'true'", ['stagehand'], 'true'],
  ["user_metadata['a']['b']['c']:'d'", ['a', 'b', 'c'], 'd'],
  ["user_metadata['']:''", [''], ''],
  [`user_metadata['a "key"']:'b:[c]'`, ['a "key"'], 'b:[c]'],
  [String.raw`user_metadata['it\'s']:'a\\b\'c'`, ["it's"], String.raw`a\b'c`],
  ["user_metadata['größe']:'日本'", ['größe'], '日本'],
];
for (const [q, keys, value] of GOOD) {
  test(`${q} is parsed`, () => assert.equal(parseQuery(q), { keys, value }));
}

const BAD = [
  '',
  'user_metadata',
  "user_metadata:'a'",
  "user_metadata['a']",
  "user_metadata['a']:",
  "user_metadata['a']:b",
  'user_metadata["a"]:"b"',
  "user_metadata[a]:'b'",
  "user_metadata['a']:'b' ",
  " user_metadata['a']:'b'",
  "user_metadata['a']:'b'c'",
  "user_metadata['a'x]:'b'",
  "metadata['a']:'b'",
  "user_metadata.a:'b'",
  String.raw`user_metadata['a']:'b\'`,
  String.raw`user_metadata['a']:'\n'`,
  `user_metadata['${'x'.repeat(2_100)}']:'b'`,
];
for (const q of BAD) {
  test(`${q.slice(0, 60) || 'nothing'} is refused, naming q`, () => {
    const message = "`q` must have the form user_metadata['key']:'value'.";
    assert.throws(
      () => parseQuery(q),
      (error: unknown) => error instanceof Fault && error.message === message,
    );
  });
}

test('a hostile query is parsed within milliseconds', () => {
  const startedAt = performance.now();
  for (const part of ["['a']", "['", '\\', "'", "']['"]) {
    const q = `user_metadata${part.repeat(2_000 / part.length)}`;
    assert.throws(() => parseQuery(q));
  }
  assert.ok(performance.now() - startedAt < 30_000);
});

test.run();
