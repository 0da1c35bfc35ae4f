/** The bundle of the executable's program. That it works is tested by test/journey/install. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { BUNDLED, bundle } from '../../../gateway/packaging/bundle.ts';
import { compile } from '../../../gateway/packaging/compile.ts';
import { VERSION } from '../../../gateway/process/version.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/packaging/bundle');
const ROOT = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

test('every file parses, and imports no package that is in the bundle', async () => {
  await using dir = tempDirectory();
  await compile(ROOT, dir.path);
  await bundle(ROOT, dir.path);
  const folder = join(dir.path, 'bundle');
  const files = readdirSync(folder);
  ok(files.length > 20);
  for (const name of files) {
    const code = readFileSync(join(folder, name), 'utf8');
    await transform(code, { format: 'esm', logLevel: 'silent' }); // throws for a second declaration
    const imports = code.matchAll(/^(?:import|export)\b[^;]*?"([^"./][^"]*)";$/gm);
    const names = [...imports].map(([, imported = '']) => imported);
    equal(
      names.filter((imported) => BUNDLED.includes(imported)),
      [],
      name,
    );
  }
  match(readFileSync(join(dir.path, 'gateway/bin.js'), 'utf8'), "from '../bundle/gateway-bin.js'");
});

test('the bundled program finds its files and its packages', async () => {
  await using dir = tempDirectory();
  await compile(ROOT, dir.path);
  await bundle(ROOT, dir.path);
  symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
  const { stdout } = await run(process.execPath, [join(dir.path, 'gateway/tabern.js'), 'version']);
  is(stdout, `${VERSION}\n`);
});

test.run();
