/**
 * Builds the files of `npm pack` in dist/js: the compiled program, and the types of the user's
 * imports; and beside it, in dist/functions, the package "@tabern/functions". `--sdk` builds only
 * what users import, for projects that install a checkout as a directory;
 * `--out DIRECTORY` sets another path than dist/js.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { compile, renamed } from './compile.ts';
import { writeDeclaration, writePackage } from './functions.ts';

const ROOT = join(import.meta.dirname, '../..');
const SDK = 'runner/sdk';
/** The modules that users import: of "tabern", and of "tabern/resume". */
const IMPORTED = [SDK, 'runner/resume'];
const TSC = [
  ...['--ignoreConfig', '--declaration', '--emitDeclarationOnly', '--strict', '--types', 'node'],
  ...['--target', 'es2024', '--module', 'nodenext', '--verbatimModuleSyntax'],
  '--allowImportingTsExtensions',
];

const { values } = parseArgs({
  options: { sdk: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const out = values.out ?? join(ROOT, 'dist/js');
await writeDeclaration(ROOT);
// or deleted modules would be packed
for (const path of values.sdk ? IMPORTED.map((folder) => join(out, folder)) : [out]) {
  await rm(path, { recursive: true, force: true });
}
await compile(ROOT, out, values.sdk ? IMPORTED : undefined);
for (const folder of IMPORTED) await declare(folder);
await writePackage(ROOT, join(out, SDK), join(dirname(out), 'functions'));

/** The declarations refer to compiled modules too. */
async function declare(folder: string): Promise<void> {
  const to = join(out, folder);
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  await promisify(execFile)(tsc, [...TSC, '--outDir', to, join(ROOT, folder, 'mod.ts')]);
  const names = await readdir(to);
  const declarations = names.filter((name) => name.endsWith('.d.ts')).map((name) => join(to, name));
  for (const path of declarations) {
    const text = await readFile(path, 'utf8');
    await writeFile(path, renamed(text.replaceAll(/from '([^']+)'/g, 'from "$1"')));
  }
}
