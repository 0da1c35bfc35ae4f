/** The bundle of the executable's program. test/journey/install/binary.test.ts runs it. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { Piscina } from 'piscina';
import { suite } from 'uvu';
import { equal, instance, is, match, ok } from 'uvu/assert';
import { BUNDLED, bundle, FOLDER, PACKAGE_NAME } from '../../../gateway/packaging/bundle.ts';
import { compile } from '../../../gateway/packaging/compile.ts';
import { VERSION } from '../../../gateway/process/version.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/packaging/bundle');
const ROOT = join(import.meta.dirname, '../../..');
const PACKAGES = join(ROOT, 'node_modules');
const run = promisify(execFile);
/** `from "x"`, `import "x"`, `import("x")`, `require("x")`. */
const IMPORTED = /(?:^|\s)(?:from|import|__require)\s*\(?\s*"([^"./][^"\n]*)"/gm;

/** A bundled program; the last test removes its directory. */
async function bundled() {
  const dir = tempDirectory();
  await compile(ROOT, dir.path);
  await bundle(ROOT, dir.path);
  const folder = join(dir.path, FOLDER);
  const files = readdirSync(folder).map((name) => ({
    name,
    code: readFileSync(join(folder, name), 'utf8'),
  }));
  return { dir, path: dir.path, files };
}

const first = await bundled();
const second = await bundled();

test('every file parses, and imports no package that is in the bundle', async () => {
  const { path: root, files } = first;
  ok(files.length > 20);
  const all = new Set<string>();
  for (const { name, code } of files) {
    await transform(code, { format: 'esm', logLevel: 'silent' }); // throws for a second declaration
    const names = [...code.matchAll(IMPORTED)].map(([, path = '']) => PACKAGE_NAME.exec(path)?.[0]);
    equal(
      names.filter((one) => BUNDLED.includes(one ?? '')),
      [],
      name,
    );
    for (const one of names) all.add(one ?? '');
  }
  // the expression finds what it is to find: packages that are external
  for (const name of ['better-sqlite3', 'piscina', 'ws']) ok(all.has(name), name);
  match(readFileSync(join(root, 'gateway/bin.js'), 'utf8'), "from '../bundle/gateway-bin.js'");
});

test('equal sources have equal bundles, without the path of the build', async () => {
  equal(first.files, second.files);
  for (const { name, code } of first.files) {
    for (const path of [first.path, ROOT]) is(code.includes(path), false, name);
  }
  is(existsSync(join(first.path, 'node_modules')), false);
});

test('bundled modules find the files beside their unbundled ones', async () => {
  const paths = first.files.flatMap(({ code }) =>
    [...code.matchAll(/__(?:urlOf|pathOf)\d*\("([^"]+)"\)/g)].map(([, path = '']) => path),
  );
  ok(paths.length > 20);
  equal(
    paths.filter((path) => !existsSync(join(first.path, path))),
    [],
  );
});

test('the command and a thread of a pool run', async () => {
  symlinkSync(PACKAGES, join(first.path, 'node_modules'));
  const { stdout } = await run(process.execPath, [
    join(first.path, 'gateway/tabern.js'),
    'version',
  ]);
  is(stdout, `${VERSION}\n`);
  const pool = new Piscina({ filename: join(first.path, 'core/contexts/key-thread.js') });
  try {
    instance(await pool.run(undefined), Object);
  } finally {
    await pool.destroy();
  }
});

test('the bundles of these tests are removed', async () => {
  for (const { dir, path } of [first, second]) {
    await dir[Symbol.asyncDispose]();
    is(existsSync(path), false);
  }
});

test.run();
