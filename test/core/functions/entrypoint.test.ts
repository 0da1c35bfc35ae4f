import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { normalisedEntrypoint } from '../../../core/functions/builds.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('core/functions/entrypoint');

const TAKEN = {
  'index.ts': 'index.ts',
  './src/index.ts': 'src/index.ts',
  'src//a.mjs': 'src/a.mjs',
  'src\\a.mts': 'src/a.mts',
  'a..b/c.js': 'a..b/c.js',
};
for (const [typed, path] of Object.entries(TAKEN)) {
  test(`${typed} is ${path}`, () => assert.is(normalisedEntrypoint(typed), path));
}

const REFUSED = ['', '/abs/index.ts', '../index.ts', 'a/../../b.ts', 'a/../b.ts', 'C:\\a.ts'];
for (const typed of [...REFUSED, 'a.txt', 'a', 'a\0.ts', `${'a'.repeat(512)}.ts`, '..\\a.ts']) {
  test(`${JSON.stringify(typed.slice(0, 20))} is refused`, () => {
    assert.throws(
      () => normalisedEntrypoint(typed),
      (error: unknown) => error instanceof Fault && error.facts['field'] === 'entrypoint',
    );
  });
}

test.run();
