/**
 * Builds the files of `npm pack` in dist/js: the compiled program, and the types of the user's
 * imports; and beside it, in dist/functions, the package "@tabern/functions". `--sdk` builds only
 * what authors of functions import, for projects that install a checkout as a directory;
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
await rm(values.sdk ? join(out, SDK) : out, { recursive: true, force: true });
await compile(ROOT, out, values.sdk ? [SDK] : undefined);
await declare(join(out, SDK));
await writePackage(ROOT, join(out, SDK), join(dirname(out), 'functions'));

/** The declarations refer to compiled modules too. */
async function declare(to: string): Promise<void> {
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  await promisify(execFile)(tsc, [...TSC, '--outDir', to, join(ROOT, SDK, 'mod.ts')]);
  const names = await readdir(to);
  const declarations = names.filter((name) => name.endsWith('.d.ts')).map((name) => join(to, name));
  for (const path of declarations) {
    const text = await readFile(path, 'utf8');
    await writeFile(path, renamed(text.replaceAll(/from '([^']+)'/g, 'from "$1"')));
  }
}
