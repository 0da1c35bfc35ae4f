/**
 * Makes a project that was written for Deno installable: where there is no package.json, one is
 * made of the packages that deno.json's imports and the sources' own npm: and jsr: specifiers name.
 * Used in the build's jail.
 */
import { lstat, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildFailure } from '../build-failure.ts';
import type { BuildLog } from '../log.ts';
import { SETTINGS_MAX_BYTES } from '../read-file.ts';
import { packageOf, readImports } from './deno-config.ts';
import { JSR_REGISTRY, JSR_SETTING } from './npm-config.ts';
import { isThere } from './package-managers.ts';

const SOURCE = /\.[cm]?[jt]sx?$/;
const SPECIFIER = /\b(?:from|import)\s{0,99}(?:\(\s{0,99})?(['"])((?:npm|jsr):[^'"\s]+)\1/g;

/**
 * What of the project comes from jsr, by the names of its mirror. Throws a BuildFailure for imports
 * that no installation can serve.
 */
export async function fromDeno(
  root: string,
  { namesJsr, line }: { namesJsr: boolean; line: BuildLog['line'] },
): Promise<string[]> {
  if (await isThere(join(root, 'package.json'))) return [];
  const imports = await readImports(root);
  const specifiers = [...Object.values(imports ?? {}), ...(await inSources(root))];
  const dependencies = dependenciesOf(specifiers);
  const names = Object.keys(dependencies);
  if (names.length === 0) return [];
  const made = { private: true, type: 'module', dependencies };
  await writeFile(join(root, 'package.json'), `${JSON.stringify(made, null, 2)}\n`);
  const said = Object.entries(dependencies).map(([name, version]) => `${name}@${version}`);
  line('info', `a project of Deno: its imports are its dependencies: ${said.join(', ')}`);
  if (await isThere(join(root, 'deno.lock'))) {
    line('warn', 'deno.lock is not read: newest versions in range are used');
  }
  const ofJsr = names.filter((name) => name.startsWith('@jsr/'));
  if (ofJsr.length > 0 && !namesJsr) {
    await writeFile(join(root, '.npmrc'), `${JSR_SETTING}=${JSR_REGISTRY}\n`);
  }
  return ofJsr;
}

/** What to tell whose packages of jsr could not be installed. */
export function jsrAdvice(names: readonly string[]): string {
  const asked = names.map((name) => name.replace(/^@jsr\/(.+?)__/, 'jsr:@$1/')).join(', ');
  return (
    `${asked}: the service must reach ${JSR_REGISTRY}, or a mirror that its operator names by ` +
    `${JSR_SETTING} in npm's settings; without one, use packages of npm`
  );
}

async function inSources(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !SOURCE.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    if ((await lstat(path)).size > SETTINGS_MAX_BYTES) continue; // nobody has written it by hand
    const text = await readFile(path, 'utf8');
    for (const [, , specifier = ''] of text.matchAll(SPECIFIER)) found.push(specifier);
  }
  return found;
}

function dependenciesOf(specifiers: readonly string[]): Record<string, string> {
  const versions = new Map<string, string>();
  for (const specifier of specifiers) {
    const named = packageOf(specifier);
    if (named === undefined) {
      if (/^(?:npm|jsr):/.test(specifier)) throw nameless(specifier);
      continue;
    }
    const { name, version } = named;
    const other = versions.get(name) ?? '*';
    if (other !== '*' && version !== '*' && other !== version) throw twice(name, [other, version]);
    versions.set(name, version === '*' ? other : version);
  }
  return Object.fromEntries([...versions].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function nameless(specifier: string): BuildFailure {
  const forms = 'npm:name@version or jsr:@scope/name@version';
  return new BuildFailure('BUILD_ERROR', `${specifier} names no package; write ${forms}`);
}

function twice(name: string, versions: string[]): BuildFailure {
  const problem = `${name} is imported in two versions, ${versions.join(' and ')}; use one`;
  return new BuildFailure('BUILD_ERROR', problem);
}
