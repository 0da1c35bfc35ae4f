/**
 * Prepares pnpm's lock file for an install: removes the SDK, checks the entries, and writes the
 * file again, so that pnpm's own parser cannot read YAML differently. The file may name any
 * directory of the installer's jail as a package, which pnpm would copy. Formats 5, 6 and 9, one
 * document or two. Used in the build's jail.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { type BuildFailure, buildError } from '../build-failure.ts';
import { isObject, type Json, LOCK_MAX_BYTES, readText } from '../read-file.ts';
import { checkPath, checkSpec, compact, outOfGit, outside } from './package-source.ts';
import { dropFrom, dropMembers, entriesOf, SDKS, stringsOf } from './project-json.ts';

export const PNPM_LOCK = 'pnpm-lock.yaml';
/** Ours: a lock file has 8. */
const DEPTH_MAX = 64;
/** Newer versions write a first document with pnpm's own dependencies. */
const DOCUMENTS_MAX = 2;
/** Types of a resolution; undefined for a package from a registry. */
const RESOLUTIONS: readonly unknown[] = [undefined, 'directory', 'variations', 'binary'];
/** Ours: of a key or a version with paths; checking each path takes the whole length. */
const PATH_MAX_CHARACTERS = 4_096;
const PATHS_MAX = 64;
/** In a version or a key: `name@file:path(peer@version)`. */
const PATHS = /(?:^|[@(:])(file|link|portal):/gi;
const GIT = [
  /(?:^|[@(])(?:git[+:]|ssh:|(?:github|gitlab|bitbucket|gist):)/i,
  /(?:^|[@(])git@[\w.-]*[a-z][\w.-]*[:+]/i,
];
const CLIMBS = /(?:^|[/\\@(:])\.\.(?:[/\\)(]|$)/;
const OF_SDK = new RegExp(`^/?(?:${SDKS.join('|')})(?:[@/]|$)`);

/** Whether the file exists. Throws a BuildFailure that names a forbidden entry. */
export async function checkPnpmLock(root: string, isDropped: boolean): Promise<boolean> {
  const text = await readText(root, PNPM_LOCK, LOCK_MAX_BYTES);
  if (text === undefined) return false;
  const documents = documentsOf(text);
  for (const document of documents) {
    if (!isObject(document)) continue;
    if (isDropped) dropFromLock(document);
    checkDocument(document);
  }
  // JSON is YAML; documents are separated by a line, as pnpm does
  const written = documents.map((document) => `${JSON.stringify(document)}\n`).join('---\n');
  await writeFile(join(root, PNPM_LOCK), documents.length > 1 ? `---\n${written}` : written);
  return true;
}

function documentsOf(text: string): unknown[] {
  let found: unknown[];
  try {
    // pnpm writes no aliases
    found = loadAll(text, { maxAliases: 0, maxDepth: DEPTH_MAX });
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    throw failure(`is not YAML as pnpm writes it (${reason}); make it anew`);
  }
  if (found.length <= DOCUMENTS_MAX) return found;
  throw failure(`has more than ${DOCUMENTS_MAX} documents; make it anew`);
}

function dropFromLock(lock: Json): void {
  for (const importer of [lock, ...entriesOf(lock['importers']).map(([, one]) => one)]) {
    if (!isObject(importer)) continue;
    dropFrom(importer);
    dropMembers(importer['specifiers'], SDKS);
  }
  for (const all of [lock['packages'], lock['snapshots']].filter(isObject)) {
    for (const [key, entry] of Object.entries(all)) {
      const name = isObject(entry) ? entry['name'] : undefined;
      if (OF_SDK.test(key) || SDKS.some((sdk) => sdk === name)) delete all[key];
    }
  }
}

function checkDocument({ importers, packages, snapshots, ...rest }: Json): void {
  // formats 5 and 6 have the members of a single importer at the top level
  checkImporter(rest, '.');
  for (const [id, importer] of entriesOf(importers)) {
    checkPath(id, id);
    checkImporter(importer, id);
  }
  for (const [key, entry] of [...entriesOf(packages), ...entriesOf(snapshots)]) {
    checkText(key, key);
    // `deprecated` is free text of the package's author
    const { deprecated: _, ...more } = isObject(entry) ? entry : { entry };
    checkAll(more, key, '');
  }
  for (const [name, spec] of stringsOf(rest['overrides'])) checkSpec(name, spec);
  for (const [name, patch] of entriesOf(rest['patchedDependencies'])) {
    const path = isObject(patch) ? patch['path'] : patch;
    if (typeof path === 'string') checkPath(name, path);
  }
}

function checkImporter(importer: unknown, id: string): void {
  const { specifiers, ...more } = isObject(importer) ? importer : {};
  for (const [name, spec] of stringsOf(specifiers)) checkSpec(name, spec, id);
  checkAll(more, id, id);
}

/** Checks all keys and texts at any depth. `name` is the nearest name of a package. */
function checkAll(value: unknown, name: string, base: string): void {
  if (typeof value === 'string') checkText(name, value, base);
  const parts = Array.isArray(value) ? value.map((one) => [name, one] as const) : entriesOf(value);
  for (const [key, part] of parts) {
    if (key === 'specifier') checkSpec(name, part, base);
    if (key === 'resolution') checkResolution(name, part);
    else {
      if (key !== name) checkText(key, key, base);
      const isMember = typeof part === 'string' && isObject(value);
      checkAll(part, isMember && key === 'version' ? name : key, base);
    }
  }
}

function checkResolution(name: string, resolution: unknown): void {
  if (!isObject(resolution)) {
    checkAll(resolution, name, '');
    return;
  }
  const { type, directory, tarball, path, repo, commit, variants, ...more } = resolution;
  const isGit = repo !== undefined || commit !== undefined || String(type) === 'git';
  if (isGit) throw outOfGit(name, String(repo ?? 'type: git'));
  if (!RESOLUTIONS.includes(type)) {
    throw failure(`has an unknown type of resolution for ${JSON.stringify(name)}; make it anew`);
  }
  for (const [, folder] of stringsOf([directory])) checkPath(name, folder);
  for (const [, address] of stringsOf([tarball])) checkSpec(name, address);
  // a folder inside a tarball begins with a slash
  for (const [, folder] of stringsOf([path])) checkPath(name, compact(folder).replace(/^\/+/, ''));
  for (const variant of Array.isArray(variants) ? variants : []) checkAll(variant, name, '');
  checkAll(more, name, '');
}

/** Checks a key, a version or another text. Links are relative to `base`, files to the lock. */
function checkText(name: string, text: string, base = ''): void {
  const value = compact(text);
  if (GIT.some((form) => form.test(value))) throw outOfGit(name, value);
  const paths = [...value.matchAll(PATHS)];
  if (paths.length > 0 && (value.length > PATH_MAX_CHARACTERS || paths.length > PATHS_MAX)) {
    throw failure(`names too many paths at once: ${JSON.stringify(value.slice(0, 100))}`);
  }
  for (const found of paths) {
    const rest = value.slice(found.index + found[0].length);
    const from = found[1]?.toLowerCase() === 'link' ? base : '';
    for (const path of [rest, rest.split('(', 1)[0] ?? '']) checkPath(name, path, from);
  }
  if (paths.length === 0 && CLIMBS.test(value)) throw outside(name, value);
}

function failure(problem: string): BuildFailure {
  return buildError(`${PNPM_LOCK} ${problem}`);
}
