/**
 * Makes a project written for Deno installable: without a package.json, one is generated from the
 * packages in deno.json's imports and in the sources' npm: and jsr: specifiers. Used in the build's
 * jail.
 */
import { existsSync } from 'node:fs';
import { lstat, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildFailure, buildError } from '../build-failure.ts';
import type { BuildLog } from '../log.ts';
import { SETTINGS_MAX_BYTES } from '../read-file.ts';
import { packageOf, readImports } from './deno-config.ts';
import { JSR_REGISTRY, JSR_SETTING } from './npm-config.ts';
import { writeJson } from './project-json.ts';

const SOURCE = /\.[cm]?[jt]sx?$/;
const SPECIFIER = /\b(?:from|import)\s{0,99}(?:\(\s{0,99})?(['"])((?:npm|jsr):[^'"\s]+)\1/g;

/**
 * Generates package.json. Returns the packages of jsr, by the mirror's names. Throws a BuildFailure
 * for imports that cannot be installed.
 */
export async function fromDeno(
  root: string,
  { namesJsr, line }: { namesJsr: boolean; line: BuildLog['line'] },
): Promise<string[]> {
  if (existsSync(join(root, 'package.json'))) return [];
  const imports = await readImports(root);
  const specifiers = [...Object.values(imports ?? {}), ...(await inSources(root))];
  const dependencies = dependenciesOf(specifiers);
  const names = Object.keys(dependencies);
  if (names.length === 0) return [];
  await writeJson(root, 'package.json', { private: true, type: 'module', dependencies });
  const all = Object.entries(dependencies).map(([name, version]) => `${name}@${version}`);
  line('info', `a project of Deno: its imports are its dependencies: ${all.join(', ')}`);
  if (existsSync(join(root, 'deno.lock'))) {
    line('warn', 'deno.lock is not read: newest versions in range are used');
  }
  const ofJsr = names.filter((name) => name.startsWith('@jsr/'));
  if (ofJsr.length > 0 && !namesJsr) {
    await writeFile(join(root, '.npmrc'), `${JSR_SETTING}=${JSR_REGISTRY}\n`);
  }
  return ofJsr;
}

/** The advice after a failed installation of packages of jsr. */
export function jsrAdvice(names: readonly string[]): string {
  const packages = names.map((name) => name.replace(/^@jsr\/(.+?)__/, 'jsr:@$1/')).join(', ');
  return (
    `${packages}: the service must reach ${JSR_REGISTRY}, or a mirror that its operator names by ` +
    `${JSR_SETTING} in npm's settings; without one, use packages of npm`
  );
}

async function inSources(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !SOURCE.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    if ((await lstat(path)).size > SETTINGS_MAX_BYTES) continue; // not written by hand
    const text = await readFile(path, 'utf8');
    for (const [, , specifier = ''] of text.matchAll(SPECIFIER)) found.push(specifier);
  }
  return found;
}

function dependenciesOf(specifiers: readonly string[]): Record<string, string> {
  const versions = new Map<string, string>();
  for (const specifier of specifiers) {
    if (!/^(?:npm|jsr):/.test(specifier)) continue;
    const { name, version } = packageOf(specifier) ?? nameless(specifier);
    const other = versions.get(name) ?? '*';
    if (other !== '*' && version !== '*' && other !== version) throw twice(name, [other, version]);
    versions.set(name, version === '*' ? other : version);
  }
  return Object.fromEntries([...versions].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function nameless(specifier: string): never {
  const forms = 'npm:name@version or jsr:@scope/name@version';
  throw buildError(`${specifier} names no package; write ${forms}`);
}

function twice(name: string, versions: string[]): BuildFailure {
  return buildError(`${name} is imported in two versions, ${versions.join(' and ')}; use one`);
}
