/**
 * A project's package.json and package-lock.json before an install: read, checked and relieved of
 * our own SDK. The service supplies "tabern" itself, in whatever way the author depends on it: a
 * registry has no such package, a path to it means nothing here. Dependencies by path must stay
 * inside the project.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { BuildFailure } from './failure.ts';

const SDK = 'tabern';
const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];
const LOCKS = ['package-lock.json', 'npm-shrinkwrap.json'];

type Json = Record<string, unknown>;
export type Project = {
  json: Json;
  /** Names of all of its direct dependencies, our SDK excepted. */
  dependencies: string[];
};

/**
 * Undefined when there is none. Throws a BuildFailure for one that npm could not use, or should
 * not.
 */
export async function readProject(root: string): Promise<Project | undefined> {
  const json = await readJson(root, 'package.json');
  if (json === undefined) return undefined;
  const all = KINDS.flatMap((kind) => entriesOf(json[kind]));
  for (const [name, spec] of all) checkSpec(name, spec);
  for (const file of LOCKS) checkLock(await readJson(root, file));
  const names = new Set(all.map(([name]) => name).filter((name) => name !== SDK));
  if (entriesOf(json['workspaces']).length > 0) names.add('workspaces');
  return { json, dependencies: [...names] };
}

/** Takes our SDK out of package.json and the lock. True when it was there. */
export async function dropSdk(
  root: string,
  { json }: Project,
  isLocked: boolean,
): Promise<boolean> {
  const kinds = KINDS.filter((kind) => entriesOf(json[kind]).some(([name]) => name === SDK));
  if (kinds.length === 0) return false;
  for (const kind of kinds) delete (json[kind] as Json)[SDK];
  await writeJson(root, 'package.json', json);
  if (isLocked) for (const file of LOCKS) await dropFromLock(root, file);
  return true;
}

async function dropFromLock(root: string, file: string): Promise<void> {
  const lock = await readJson(root, file);
  const packages = lock?.['packages'];
  if (!lock || !isObject(packages)) return;
  const own = packages[''];
  if (isObject(own)) {
    for (const kind of KINDS) if (isObject(own[kind])) delete (own[kind] as Json)[SDK];
  }
  const key = `node_modules/${SDK}`;
  const entry = packages[key];
  const target = isObject(entry) && entry['link'] === true ? entry['resolved'] : undefined;
  for (const path of Object.keys(packages)) {
    const isTarget = typeof target === 'string' && isAt(path, target);
    if (isAt(path, key) || isTarget) delete packages[path];
  }
  // Of the first two lock file versions: npm reads `packages` where both are there.
  if (isObject(lock['dependencies'])) delete lock['dependencies'][SDK];
  await writeJson(root, file, lock);
}

function isAt(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** A lock names files too: by `resolved`, and by the folders that its links lead to. */
function checkLock(lock: Json | undefined): void {
  const packages = lock?.['packages'];
  if (!isObject(packages)) return;
  for (const [path, entry] of Object.entries(packages)) {
    if (!isObject(entry) || isAt(path, `node_modules/${SDK}`)) continue;
    const { resolved, link } = entry;
    if (typeof resolved !== 'string') continue;
    checkSpec(path, link === true ? `file:${resolved}` : resolved);
  }
}

/** Refuses a dependency that npm would read from the machine it runs on. */
function checkSpec(name: string, spec: unknown): void {
  if (typeof spec !== 'string' || name === SDK) return;
  const value = spec.trim();
  if (/^git\+file:/i.test(value)) throw outside(name, value);
  const isPath = /^(?:file:|link:|portal:|workspace:|\.{0,2}\/|\.{1,2}$|~\/)/i.test(value);
  if (!isPath || /^workspace:[*^~\d]/i.test(value)) return;
  const target = decodeURIComponent(value.replace(/^[a-z]+:/i, ''));
  const normal = posix.normalize(target);
  const climbs = normal === '..' || normal.startsWith('../');
  if (target.startsWith('/') || target.startsWith('~') || climbs) throw outside(name, value);
}

async function readJson(root: string, file: string): Promise<Json | undefined> {
  let text: string;
  try {
    text = await readFile(join(root, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new BuildFailure('BUILD_ERROR', `${file} cannot be read`, error);
  }
  try {
    const json: unknown = JSON.parse(text.replace(/^\uFEFF/, ''));
    if (isObject(json)) return json;
  } catch (error) {
    throw new BuildFailure('BUILD_ERROR', `${file} is not valid JSON; repair it`, error);
  }
  throw new BuildFailure('BUILD_ERROR', `${file} must hold a JSON object`);
}

async function writeJson(root: string, file: string, json: Json): Promise<void> {
  await writeFile(join(root, file), `${JSON.stringify(json, null, 2)}\n`);
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function outside(name: string, spec: string): BuildFailure {
  return new BuildFailure(
    'BUILD_ERROR',
    `the dependency ${JSON.stringify(name)} is outside the project (${spec}); copy it into it`,
  );
}
