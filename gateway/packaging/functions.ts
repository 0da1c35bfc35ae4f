/**
 * The SDK for authors of functions, in two forms: the npm package "@tabern/functions", without
 * dependencies, and the declaration of "tabern" that `tabern init` writes into a project.
 */
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const SDK = 'runner/sdk';
/** Read by runner/cli/init.ts; `.txt`, because a compiler would include a declaration. */
const DECLARATION = 'runner/cli/gen/tabern.d.ts.txt';
/** A module's code and its declarations. */
const MODULE = /\.(?:js|d\.ts)$/;

/** Fills `out` with the package. `compiled` is the compiled SDK with its declarations. */
export async function writePackage(root: string, compiled: string, out: string): Promise<void> {
  const { name, ...manifest } = await json(join(root, SDK, 'package/package.json'));
  const { version } = await json(join(root, 'package.json'));
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const names = (await readdir(compiled)).filter((one) => MODULE.test(one));
  await Promise.all(names.map((one) => cp(join(compiled, one), join(out, one))));
  await cp(join(root, SDK, 'package/README.md'), join(out, 'README.md'));
  await cp(join(root, 'LICENSE'), join(out, 'LICENSE'));
  const text = JSON.stringify({ name, version, ...manifest }, null, 2);
  await writeFile(join(out, 'package.json'), `${text}\n`);
}

/**
 * Writes the declaration, from the sources of the SDK. A `tabern init` that reads it meanwhile sees
 * it whole.
 */
export async function writeDeclaration(root: string): Promise<void> {
  const path = join(root, DECLARATION);
  const text = await declaration(root);
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return;
  await mkdir(dirname(path), { recursive: true });
  const aside = `${path}.${process.pid}`;
  await writeFile(aside, text);
  await rename(aside, path);
}

/** The types of the SDK and the overloads of defineFn, as one ambient module. */
export async function declaration(root: string): Promise<string> {
  const types = await readFile(join(root, SDK, 'types.ts'), 'utf8');
  const registry = await readFile(join(root, SDK, 'registry.ts'), 'utf8');
  const overloads = registry.match(/^export function defineFn<[\s\S]*?\): void;\n/gm) ?? [];
  const body = `${types}\n${overloads.join('')}`.replace(/^(?=.)/gm, '  ');
  return `declare module 'tabern' {\n${body}}\n`;
}

async function json(path: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(path, 'utf8'));
}
