/** deno.json's imports and Deno's specifiers: their meaning, and refused ones. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BuildFailure } from '../../../../runner/builds/build-failure.ts';
import { mapped, packageOf, readImports } from '../../../../runner/builds/install/deno-config.ts';
import { directory } from '../../../support/runner/project.ts';

const test = suite('runner/builds/install/deno-config');

async function importsOf(files: Record<string, string>) {
  await using project = directory(files);
  return await readImports(project.path);
}

async function refusalOf(files: Record<string, string>): Promise<string> {
  try {
    await importsOf(files);
  } catch (error) {
    if (error instanceof BuildFailure) return error.message;
    throw error;
  }
  throw new Error('it was not refused');
}

test('an import map in deno.json or deno.jsonc may have comments and commas', async () => {
  assert.is(await importsOf({ 'index.ts': '' }), undefined);
  assert.equal(await importsOf({ 'deno.json': '{}' }), {});
  const text = `{ // a comment with "quotes"
    /* and "imports": {} */ "imports": { "a": "npm:a@1", "url//": "./x/*y*/z.ts,]", }, }`;
  const map = { a: 'npm:a@1', 'url//': './x/*y*/z.ts,]' };
  assert.equal(await importsOf({ 'deno.jsonc': text }), map);
  const files = { 'deno.json': '{"importMap": "maps/one.json"}' };
  assert.equal(await importsOf({ ...files, 'maps/one.json': '{"imports": {"a": "./b.ts"}}' }), {
    a: './b.ts',
  });
});

for (const [what, files, says] of [
  ['no JSON', { 'deno.json': '{"imports": ' }, /^deno\.json is not valid JSON; repair it$/],
  ['a list', { 'deno.json': '[]' }, /^deno\.json must hold a JSON object$/],
  ['a map of numbers', { 'deno.json': '{"imports": {"a": 1}}' }, /must map names to specifiers/],
  ['a map elsewhere', { 'deno.json': '{"importMap": "../map.json"}' }, /a file of the project/],
  ['a map by URL', { 'deno.json': '{"importMap": "https://a/m"}' }, /a file of the project/],
  ['a map that is not there', { 'deno.json': '{"importMap": "m.json"}' }, /there is no m\.json/],
] as const) {
  test(`${what}: refused`, async () => {
    assert.match(await refusalOf(files), says);
  });
}

test('a config with an unterminated string or comment is read in one pass', async () => {
  for (const piece of ['/*', '"\\', '"', ',']) {
    assert.match(await refusalOf({ 'deno.json': piece.repeat(500_000) }), /not valid JSON/);
  }
});

test('names, the paths of a package and folders are mapped, and nothing else', () => {
  const imports = {
    zod: 'npm:zod@4',
    '@std/path': 'jsr:@std/path@^1',
    '@/': './src/',
    '@/deep/': './elsewhere/',
    util: './util.ts',
  };
  const at = (specifier: string) => mapped(specifier, imports);
  assert.is(at('zod'), 'npm:zod@4');
  assert.is(at('zod/mini'), 'npm:zod@4/mini');
  assert.is(at('@std/path/posix'), 'jsr:@std/path@^1/posix');
  assert.is(at('@/a/b.ts'), './src/a/b.ts');
  assert.is(at('@/deep/b.ts'), './elsewhere/b.ts', 'the longest beginning');
  assert.is(at('util'), './util.ts');
  for (const other of ['util/x', 'zodiac', './util', 'constructor', '__proto__']) {
    assert.is(at(other), undefined, other);
  }
});

test('a specifier is parsed into a package, a range and a path', () => {
  const known = (specifier: string) => {
    const found = packageOf(specifier);
    return found && [found.name, found.version, found.path];
  };
  assert.equal(known('npm:zod'), ['zod', '*', '']);
  assert.equal(known('npm:/zod@^4.1.0/mini'), ['zod', '^4.1.0', '/mini']);
  assert.equal(known('npm:@a/b@1'), ['@a/b', '1', '']);
  assert.equal(known('npm:@a/b/c'), ['@a/b', '*', '/c']);
  assert.equal(known('jsr:@std/encoding@^1/hex'), ['@jsr/std__encoding', '^1', '/hex']);
  for (const none of ['zod', 'node:fs', 'npm:', 'npm:@a', 'jsr:std', 'https://a/b']) {
    assert.is(known(none), undefined, none);
  }
});

test.run();
