/**
 * Builds the files of `npm pack` in dist/js: the compiled program, and the types of the user's
 * imports. `--sdk` builds only the latter, for projects that install a checkout as a directory;
 * `--out DIRECTORY` sets another path.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { compile, renamed } from './compile.ts';

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
if (!values.sdk) await rm(out, { recursive: true, force: true });
await compile(ROOT, out, values.sdk ? [SDK] : undefined);
await declare(join(out, SDK));

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
