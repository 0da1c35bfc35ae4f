/**
 * What a change can reach: a graph of the repository's files by what each names (imports, types
 * included; workers and programs by URL; fixtures and folders by path; the contract behind
 * generated code), and the distance of every file from a set of changed ones.
 */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { codeOf } from '../layers/source.ts';

/** Each file, or folder, with all that it names. Absolute paths. */
export type Graph = ReadonlyMap<string, readonly string[]>;

const CODE = /\.(?:[cm]?[jt]s|sh)$/;
/** Strings that may be paths, from the file's folder or from the root of the repository. */
const PATHS = /['"]([^'"\s]*[./][^'"\s]*)['"]/g;
/** A folder whose files are named at run time: `../../web/live/${name}`. */
const FOLDERS = /`(\.{1,2}\/[^`$\s]*\/)[^`$\s/]*\$\{/g;
const PROTO_IMPORTS = /^import "([^"]+)";/gm;
/** The files on which the whole build depends: a change of these reaches every test. */
const EVERYWHERE = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'buf.yaml',
  'buf.gen.yaml',
  'test/run.ts',
  'test/support/run/file-run.ts',
  'test/support/run/strict.ts',
  'test/support/run/uvu.ts',
];

/** The graph of all files that git tracks or would add. */
export function sourceGraph(root: string): Graph {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
  });
  const files = listed
    .split('\0')
    .filter(Boolean)
    .map((name) => join(root, name));
  const everywhere = EVERYWHERE.map((name) => join(root, name));
  return new Map([
    ...foldersOf(root, files),
    ...files
      .filter((file) => existsSync(file))
      .map((file) => {
        const own = namedIn(root, file);
        return [file, file.endsWith('.test.ts') ? [...own, ...everywhere] : own] as const;
      }),
  ]);
}

/** Steps from each file to the nearest changed one; a file that reaches none is not in it. */
export function distancesTo(graph: Graph, changed: readonly string[]): Map<string, number> {
  const users = new Map<string, string[]>();
  for (const [file, targets] of graph) {
    for (const target of targets) users.set(target, [...(users.get(target) ?? []), file]);
  }
  const distances = new Map(changed.map((file) => [file, 0]));
  const waiting = [...changed];
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    for (const user of users.get(file) ?? []) {
      if (distances.has(user)) continue;
      distances.set(user, (distances.get(file) ?? 0) + 1);
      waiting.push(user);
    }
  }
  return distances;
}

/** Each folder below the root with its content: a file that names a folder names its files. */
function foldersOf(root: string, files: readonly string[]): Map<string, string[]> {
  const folders = new Map<string, string[]>();
  const add = (path: string): void => {
    const folder = dirname(path);
    if (!folder.startsWith(root + sep)) return;
    const known = folders.get(folder);
    if (known === undefined) add(folder);
    folders.set(folder, [...(known ?? []), path]);
  };
  for (const file of files) add(file);
  return folders;
}

function namedIn(root: string, file: string): string[] {
  const text = readFileSync(file, 'utf8');
  if (file.endsWith('.proto')) {
    return [...text.matchAll(PROTO_IMPORTS)].map(([, name = '']) => join(root, 'proto', name));
  }
  if (!CODE.test(file)) return [];
  const isTest = file.startsWith(join(root, 'test') + sep);
  return [...codeOf(text).matchAll(PATHS), ...text.matchAll(FOLDERS)]
    .flatMap(([, path = '']) => {
      const own = resolve(dirname(file), path);
      // of the product, a bare name such as 'README.md' is a file that it writes for a user
      return isTest || path.includes('/') ? [own, resolve(root, path)] : [own];
    })
    .map((path) => contractOf(root, path))
    .filter((path) => path !== root && path !== file && !isAbove(path, file));
}

/** The source of generated code: the file of the contract, or all of it for the image. */
function contractOf(root: string, path: string): string {
  const gen = join(root, 'proto', 'gen') + sep;
  if (!path.startsWith(gen)) return path;
  const source = join(root, 'proto', path.slice(gen.length).replace(/\.pb\.[jt]s$/, '.proto'));
  return existsSync(source) && statSync(source).isFile() ? source : join(root, 'proto', 'tabern');
}

/** A folder around the file itself, which its own folder's files would all reach. */
function isAbove(path: string, file: string): boolean {
  return file.startsWith(path.endsWith(sep) ? path : path + sep);
}
