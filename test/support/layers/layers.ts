/**
 * The directions of imports, as rules over a source tree, for test/layers.test.ts. README.md has
 * the map.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, posix } from 'node:path';
import { circlesOf } from './circles.ts';
import { brokenCitations, rootTexts } from './citations.ts';
import { codeOf, functionsOf, hasComputedImport, importsOf } from './source.ts';
import { MAY_READ_WALL_CLOCK, wallClockIn } from './wall-clock.ts';

const ROOTS = ['proto', 'core', 'gateway', 'runner', 'test'];
const FUNCTION_MAX_LINES = 50;
const LINE_MAX_COLUMNS = 100;
/** In a larger folder the structure is not visible. */
const FOLDER_MAX_ENTRIES = 20;
/**
 * Numbered files whose order is their structure; buf wants one folder for a package; the pages of
 * the guide are in the order of their own table of contents.
 */
const SERIES = ['core/store/sqlite/schema', 'proto/tabern/v1', 'gateway/web/docs/guide'];

/**
 * Folder -> the folders it may import from; the deepest one that holds the file decides. test may
 * import everything.
 */
const ARROWS: Record<string, readonly string[]> = {
  proto: ['proto'],
  core: ['core', 'proto'],
  gateway: ['gateway', 'proto'],
  runner: ['runner', 'proto'],
  'runner/sdk': ['runner/sdk'],
  'runner/resume': ['runner/resume'],
  'runner/host': ['runner/host', 'runner/sdk'],
  'gateway/web/console': ['gateway/web/console'],
  test: ROOTS,
};
/** Files that know every role, and the modules that they may load, by dynamic import only. */
const ROLE_TABLES = /^gateway\/cli\/.+\.ts$/;
const ROLES = new RegExp(
  [
    String.raw`^core/(?:main|maintenance/(?:doctor|move|backup/(?:offline|restore)))\.ts$`,
    String.raw`^runner/(?:main|machine/doctor|cli/[^/]+)\.ts$`,
  ].join('|'),
);

/** Folder -> the only place that may import from it: its interface to all others. */
const INNER: Record<string, string> = {
  'core/store/sqlite': 'core/store',
  'core/store/postgres': 'core/store',
};

/** Package -> the only places that may import it. */
const OWNERS: Record<string, readonly string[]> = {
  'better-sqlite3': ['core/store/sqlite/'],
  postgres: ['core/store/postgres/'],
  koa: ['gateway/'],
  '@koa/router': ['gateway/'],
  piscina: [
    'runner/host/',
    'core/contexts/key-pool.ts',
    'runner/jail/egress/ad-filters.ts',
    'gateway/packaging/compile-modules.js',
  ],
  'chrome-remote-interface': ['runner/browser/', 'runner/machine/', 'runner/one-shots/'],
  esbuild: ['runner/builds/bundle/', 'gateway/packaging/'],
  ws: ['runner/sessions/', 'gateway/'],
  undici: ['gateway/webhooks/'],
  aws4fetch: ['core/files/s3/'],
  '@hpke/core': ['proto/sealing/'],
  '@peculiar/x509': ['gateway/cli/operator/issue.ts'],
};
/**
 * Files whose npm packages are counted: `sdk` and `resume` are carried by a user's program, `host`
 * runs beside a tenant's code.
 */
const PACKAGES: Record<string, readonly string[]> = {
  'runner/sdk': [],
  'runner/resume': [],
  'runner/host': ['piscina'],
};

/** Values in, values out. */
const PURE = new RegExp(
  [
    String.raw`^core/(?:delivery/[^/]+|files/url-signature)\.ts$`,
    String.raw`^runner/sessions/log/(?:recorder|format|redaction|filter)\.ts$`,
    String.raw`^runner/browser/cdp/command-policy\.ts$`,
  ].join('|'),
);
const PURE_BUILTINS = ['node:buffer', 'node:crypto', 'node:net', 'node:util'];
/**
 * Of node:net only these functions of text. Source: core/delivery needs BlockList and isIP to check
 * an endpoint.
 */
const PURE_NET =
  /import\s*(?:type )?\{\s*(?:(?:BlockList|isIP|isIPv[46]),?\s*)+\}\s*from\s*'node:net'/;
const CLOCKS_AND_EDGES = [
  String.raw`\b(?:Date|performance)\.now\b`,
  String.raw`\bnew Date\(\)`,
  String.raw`\bMath\.random\b`,
  String.raw`\bset(?:Timeout|Interval|Immediate)\b`,
  String.raw`\bfetch\b`,
  String.raw`\bprocess\.\w+\b`,
];
const IMPURE = new RegExp(CLOCKS_AND_EDGES.join('|'));
const READS_ENV =
  /\bprocess\s*\.\s*env\b|\bprocess\s*\[\s*['"]env|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/;
/** modules.js and the executable's loader run before the program; its build is not part of it. */
const MAY_READ_ENV =
  /(?:^|\/)config\.ts$|^gateway\/(?:cli\/roles\/serve\.ts|bin\.ts|modules\.js|packaging\/)|^test\//;
/**
 * Files that import modules whose names are not in the source. The host and the builder's
 * introspection load bundles; compile.js loads every role and thread to compile them; tabern.js
 * loads the command table, as TypeScript or compiled.
 */
const MAY_COMPUTE_IMPORTS =
  /^(?:(?:runner\/host|test)\/|gateway\/(?:packaging\/compile-modules|tabern)\.js$)/;

/** Generated, or a project of a user's. */
const SKIPPED = [
  'proto/gen',
  'gateway/web/docs/gen',
  'gateway/web/console/gen',
  'core/functions/one-shots/gen',
  'test/support/projects',
];

type Source = { path: string; text: string };

/**
 * Every broken rule under `root`, one line each: `file: what is wrong`. Empty when all rules hold.
 */
export function brokenRules(root: string): string[] {
  const files = ROOTS.flatMap((folder) => sourcesOf(root, folder));
  const documents = ROOTS.flatMap((folder) => sourcesOf(root, folder, /\.(?:md|proto)$/));
  const ofEach = files.flatMap((file) => [
    ...arrows(file),
    ...packages(file),
    ...purity(file),
    ...environment(file),
    ...wallClock(file),
    ...spreads(file),
    ...sizes(file),
  ]);
  return [
    ...ofEach,
    ...circles(files),
    ...folderCircles(files),
    ...ROOTS.flatMap((folder) => crowds(root, folder)),
    ...[...files, ...documents, ...rootTexts(root)].flatMap((file) => brokenCitations(root, file)),
  ];
}

function arrows({ path, text }: Source): string[] {
  const broken: string[] = [];
  const allowed = deepest(ARROWS, path) ?? [];
  for (const { target, isDynamic } of importsOf(text)) {
    if (!target.startsWith('.')) continue;
    const to = posix.join(posix.dirname(path), target);
    if (isInner(path, to)) broken.push(`${path}: may not import ${to}`);
    if (allowed.some((folder) => to.startsWith(`${folder}/`))) continue;
    if (isDynamic && ROLE_TABLES.test(path) && ROLES.test(to)) continue;
    broken.push(`${path}: may not import ${to}`);
  }
  if (hasComputedImport(text) && !MAY_COMPUTE_IMPORTS.test(path)) {
    broken.push(`${path}: imports a module whose name is not written there`);
  }
  return broken;
}

/** Tests may import from every folder. */
function isInner(path: string, to: string): boolean {
  const owner = deepest(INNER, to);
  return owner !== undefined && !path.startsWith(`${owner}/`) && !path.startsWith('test/');
}

function packages({ path, text }: Source): string[] {
  if (path.startsWith('test/')) return [];
  const counted = deepest(PACKAGES, path);
  return importsOf(text).flatMap(({ target }) => {
    if (target.startsWith('.')) return [];
    if (isBuiltin(target)) {
      return path.startsWith('runner/sdk/') ? [`${path}: may not import ${target}`] : [];
    }
    const name = target.split('/', target.startsWith('@') ? 2 : 1).join('/');
    const owners = OWNERS[name];
    const isOwned = owners === undefined || owners.some((owner) => path.startsWith(owner));
    const isCounted = counted === undefined || counted.includes(name);
    return isOwned && isCounted ? [] : [`${path}: may not import the package ${name}`];
  });
}

function purity({ path, text }: Source): string[] {
  if (!PURE.test(path)) return [];
  const builtins = importsOf(text).filter(({ target }) => isBuiltin(target));
  const broken = builtins
    .filter(({ target }) => !PURE_BUILTINS.includes(target))
    .map(({ target }) => `${path}: is pure, so may not import ${target}`);
  if (builtins.some(({ target }) => target === 'node:net') && !PURE_NET.test(text)) {
    broken.push(`${path}: is pure, so may only judge addresses with node:net`);
  }
  const impure = IMPURE.exec(codeOf(text));
  if (impure) broken.push(`${path}: is pure, so may not use ${impure[0]}`);
  return broken;
}

function environment({ path, text }: Source): string[] {
  if (MAY_READ_ENV.test(path) || !READS_ENV.test(codeOf(text))) return [];
  return [`${path}: reads process.env, which config.ts is for`];
}

/** Pure files have a separate rule. */
function wallClock({ path, text }: Source): string[] {
  const found = wallClockIn(text);
  const isFree = path.startsWith('test/') || path in MAY_READ_WALL_CLOCK || PURE.test(path);
  if (found === undefined || isFree) return [];
  return [`${path}: reads the wall clock by ${found}: use performance.now() or steadyClock()`];
}

/** TypeScript does not check the members of a literal that is spread. */
function spreads({ path, text }: Source): string[] {
  const lines = codeOf(text).split('\n');
  return lines.flatMap((line, index) =>
    /\.{3}\{/.test(line) ? [`${path}:${index + 1}: spreads an inline literal`] : [],
  );
}

/** Files that import one another, directly or not; type imports count. */
function circles(files: readonly Source[]): string[] {
  const graph = new Map(files.map(({ path, text }) => [path, targetsOf(path, text)]));
  return circlesOf(graph).map((paths) => `${paths[0]}: a circle of imports: ${paths.join(', ')}`);
}

/** Folders of one folder that import from one another: neither can be read before the other. */
function folderCircles(files: readonly Source[]): string[] {
  const graph = new Map<string, string[]>();
  for (const { path, text } of files) {
    if (path.startsWith('test/')) continue;
    for (const target of targetsOf(path, text)) {
      const [from, to] = siblings(path, target);
      if (from === undefined || to === undefined) continue;
      graph.set(from, [...(graph.get(from) ?? []), to]);
      if (!graph.has(to)) graph.set(to, []);
    }
  }
  return circlesOf(graph).map((paths) => {
    return `${paths[0]}: imports back from a folder that it serves: ${paths.join(', ')}`;
  });
}

/** The folders below the deepest common one; none where one file is in a folder above the other. */
function siblings(one: string, other: string): string[] {
  const [a, b] = [posix.dirname(one).split('/'), posix.dirname(other).split('/')];
  const at = a.findIndex((name, index) => name !== b[index]);
  if (at < 0 || at >= b.length) return [];
  return [a.slice(0, at + 1).join('/'), b.slice(0, at + 1).join('/')];
}

function targetsOf(path: string, text: string): string[] {
  return importsOf(text)
    .filter(({ target, isDynamic }) => target.startsWith('.') && !isDynamic)
    .map(({ target }) => posix.join(posix.dirname(path), target));
}

/** Folders with too many entries. Users' projects, which are fixtures, are exempt, and a series. */
function crowds(root: string, folder: string): string[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  const within = entries
    .map(({ name }) => ({ name, path: `${folder}/${name}` }))
    .filter(({ name, path }) => name !== 'node_modules' && !SKIPPED.includes(path));
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const below = within.filter(({ name }) => folders.includes(name));
  const own =
    within.length > FOLDER_MAX_ENTRIES && !SERIES.includes(folder)
      ? [`${folder}: holds ${within.length} entries`]
      : [];
  return [...own, ...below.flatMap(({ path }) => crowds(root, path))];
}

function sizes({ path, text }: Source): string[] {
  const lines = text.trimEnd().split('\n');
  const broken = lines.flatMap((line, index) =>
    line.length > LINE_MAX_COLUMNS ? [`${path}:${index + 1}: ${line.length} columns`] : [],
  );
  const long = functionsOf(text).filter((one) => one.lines > FUNCTION_MAX_LINES);
  return [
    ...broken,
    ...long.map((one) => `${path}:${one.line}: ${one.name} has ${one.lines} lines`),
  ];
}

/** The value of the longest key that is a folder of the path. */
function deepest<T>(table: Record<string, T>, path: string): T | undefined {
  const keys = Object.keys(table).filter((folder) => path.startsWith(`${folder}/`));
  const key = keys.sort((one, other) => other.length - one.length)[0];
  return key === undefined ? undefined : table[key];
}

/**
 * The repository's own sources: without generated files, installed packages and fixture projects.
 */
function sourcesOf(root: string, folder: string, named = /\.[cm]?[jt]sx?$/): Source[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (SKIPPED.includes(path) || entry.name === 'node_modules') return [];
    if (entry.isDirectory()) return sourcesOf(root, path, named);
    if (!named.test(path)) return [];
    return [{ path, text: readFileSync(join(root, path), 'utf8') }];
  });
}
