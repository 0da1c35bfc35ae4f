/** Sources written for Deno: each becomes a bundle that runs, or is refused with advice. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BuildFailure } from '../../../../runner/builds/build-failure.ts';
import { BundleError } from '../../../../runner/builds/bundle/bundle.ts';
import { bundle } from '../../../support/runner/bundle.ts';
import { directory } from '../../../support/runner/project.ts';

const test = suite('runner/builds/bundle/specifiers');
type Files = Record<string, string>;

const HEX = {
  'node_modules/@jsr/std__hex/package.json':
    '{"name": "@jsr/std__hex", "type": "module", "exports": {".": "./mod.js", "./up": "./up.js"}}',
  'node_modules/@jsr/std__hex/mod.js': `export const hex = (n) => n.toString(16);`,
  'node_modules/@jsr/std__hex/up.js': `export const up = (s) => s.toUpperCase();`,
};

/** The result of the project's function `f`, and the warnings of the bundle. */
async function made(files: Files) {
  await using project = directory(files);
  const outFile = join(project.path, 'out.mjs');
  const root = project.path;
  const { warnings } = await bundle({ root, entrypoint: 'index.ts', outFile });
  const { definitions } = await import(pathToFileURL(outFile).href);
  return { value: await definitions().get('f').handler({}, {}), warnings };
}

async function refusalOf(files: Files): Promise<string> {
  try {
    await made(files);
  } catch (error) {
    if (error instanceof BundleError || error instanceof BuildFailure) return error.message;
    throw error;
  }
  throw new Error('it was not refused');
}

test('an import map, prefixed specifiers and .ts extensions make one bundle', async () => {
  const { value, warnings } = await made({
    ...HEX,
    'deno.jsonc': `{ "imports": { // as an editor writes it
      "tabern": "npm:tabern@0.1", "hex": "jsr:@std/hex@^1", "tools/": "./lib/", "one": "npm:one@1",
      "path": "node:path", "itself": "itself",
    } }`,
    'index.ts': `
      import { join } from 'node:path';
      import { sep } from 'path';
      import { defineFn } from 'tabern';
      import { hex } from 'hex';
      import { up } from 'hex/up';
      import { up as same } from 'jsr:@std/hex@1/up';
      import one from 'one';
      import direct from 'npm:one@1.2.3';
      import { thrice } from 'tools/thrice.ts';
      const joined = join('a', sep, 'b');
      defineFn('f', async () => [joined, up(hex(255)), same === up, one, direct, thrice(2)]);`,
    'lib/thrice.ts': `import type { N } from './types.ts'; export const thrice = (n: N) => n * 3;`,
    'lib/types.ts': 'export type N = number;',
    'node_modules/one/package.json': '{"name": "one", "type": "module", "main": "index.js"}',
    'node_modules/one/index.js': `import { hex } from 'inner'; export default hex;`,
    'node_modules/inner/package.json': '{"name": "inner", "type": "module", "main": "index.js"}',
    'node_modules/inner/index.js': `export const hex = 'a package has no map';`,
  });
  const one = 'a package has no map';
  assert.equal(value, ['a/b', 'FF', true, one, one, 6]);
  assert.equal(warnings, []);
});

test('a mapped file keeps its functions under sideEffects: false', async () => {
  const { value } = await made({
    'deno.json': '{"imports": {"#fns": "./fns.ts"}}',
    'package.json': '{"sideEffects": false}',
    'index.ts': `import '#fns';`,
    'fns.ts': `import { defineFn } from 'tabern'; defineFn('f', async () => 'kept');`,
  });
  assert.is(value, 'kept');
});

for (const [what, files, says] of [
  [
    'https: by a map',
    { 'deno.json': '{"imports": {"x": "https://deno.land/x/y.ts"}}', 'index.ts': `import 'x';` },
    /^index\.ts:1: https: imports are refused; install a package instead of https:\/\/deno\.land/,
  ],
  [
    'a package that is not installed',
    { 'index.ts': `import 'npm:absent@1';` },
    /^index\.ts:1: npm:absent@1 is not installed: add it to package\.json, or name it in deno/,
  ],
  ['a specifier without a name', { 'index.ts': `import 'npm:@a';` }, /npm:@a names no package/],
  [
    'a map to a path outside the project',
    { 'deno.json': '{"imports": {"x": "../../../etc/hostname"}}', 'index.ts': `import 'x';` },
    /^index\.ts:1: the import leads outside the project/,
  ],
  [
    'a map from the root of the machine',
    { 'deno.json': '{"imports": {"x": "/etc/hostname"}}', 'index.ts': `import 'x';` },
    /^index\.ts:1: Could not resolve "\.\/etc\/hostname"/,
  ],
  ['an invalid deno.json', { 'deno.json': '{', 'index.ts': '' }, /^deno\.json is not valid/],
] as const) {
  test(`${what}: refused`, async () => {
    assert.match(await refusalOf(files), says);
  });
}

test('Deno.* is a warning with its line, but not in a comment or a package', async () => {
  const source = (line: string) => ({
    'index.ts': `import { defineFn } from 'tabern';\nimport 'other';\n${line}
      defineFn('f', async () => 1);`,
    'node_modules/other/index.js': `export const x = typeof Deno === 'object' && Deno.version;`,
  });
  for (const line of ['export const x = () => Deno.cwd();', 'globalThis.Deno?.cwd();']) {
    const { warnings } = await made(source(line));
    assert.is(warnings.length, 1, line);
    assert.match(warnings[0] ?? '', /^index\.ts:3: Deno\.cwd is there only where .* under Deno/);
  }
  for (const line of ['// Deno.cwd()', 'const my = { Deno: { x: 1 } }; my.Deno.x;', 'let Denom;']) {
    assert.equal((await made(source(line))).warnings, [], line);
  }
});

test.run();
