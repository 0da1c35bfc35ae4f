/**
 * The files of the single executable: the compiled program, its packages, and npm when the build
 * machine has a complete one.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, join, relative } from 'node:path';
import type { Env } from '../../proto/common/env.ts';

/** `path` is inside the executable's tree, `from` on this machine. */
export type TreeFile = { path: string; from: string; isProgram: boolean };

type Manifest = {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
};

/** Excluded: the executable is itself a Node, and a Chrome would add half of the size. */
const NODE = /^node-linux-/;
const CHROME = '@sparticuz/chromium';
/** Not needed at run time: types, maps, documents, build files of addons. */
const LEFT_OUT = [
  /\.(?:md|markdown|map|d\.[cm]?ts|ts|flow|html|c|cc|cpp|h|hpp|gyp|gypi|1|5|7|yml|txt)$/,
  /\/better-sqlite3\/(?:deps|src)\//,
  /\/mediabunny\/(?:src|dist\/modules)\//,
  /\/(?:man|docs)\//,
];
/** Licences require these files in copies. */
const LICENCE = /(?:licen[cs]e|notice|copying)[^/]*$/i;
/** Prebuilt addons of other platforms: `linux-x64.node`, `prebuilds/darwin-arm64/…`. */
const PLATFORM = /\b(?:darwin|win32|linux|linuxmusl|android|freebsd)-(?:x64|arm64|arm|ia32)\b/;

/** `compiled` is a directory filled by compile.ts and bundle.ts; packages are those of `root`. */
export function treeOf(options: {
  root: string;
  compiled: string;
  env: Env;
  withChrome: boolean;
}): TreeFile[] {
  const { root, compiled, env, withChrome } = options;
  const packages = packagesOf(root, withChrome);
  const npm = npmOf(env);
  return [
    ...filesOf(compiled, ''),
    ...packages.flatMap((dir) => filesOf(dir, relative(root, dir)).filter(isKept)),
    ...(npm === undefined ? [] : filesOf(npm, 'lib/node_modules/npm').filter(isKept)),
    ...licences(root),
  ];
}

/** The licences of tabern and of the current Node, which the executable contains. */
function licences(root: string): TreeFile[] {
  const ofNode = join(dirname(realpathSync(process.execPath)), '../LICENSE');
  const all = [
    { path: 'LICENSE', from: join(root, 'LICENSE'), isProgram: false },
    { path: 'LICENSE.node', from: ofNode, isProgram: false },
  ];
  return all.filter(({ from }) => existsSync(from));
}

/** The directories of all direct and transitive dependencies in package.json. */
function packagesOf(root: string, withChrome: boolean): string[] {
  const found = new Set<string>();
  const visit = (dir: string) => {
    const manifest = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as Manifest;
    const optional = Object.keys(manifest.optionalDependencies ?? {});
    for (const name of [...Object.keys(manifest.dependencies ?? {}), ...optional]) {
      if (NODE.test(name) || name.startsWith('@types/')) continue;
      if (name === CHROME && !withChrome) continue;
      const at = locate(root, dir, name);
      if (at === undefined && optional.includes(name)) continue; // of another platform
      if (at === undefined) throw new Error(`${name} is not installed: run npm ci`);
      if (found.has(at)) continue;
      found.add(at);
      visit(at);
    }
  };
  visit(root);
  return [...found];
}

/** Node's resolution: next to the requiring package, then in parent directories. */
function locate(root: string, from: string, name: string): string | undefined {
  for (let dir = from; dir.startsWith(root); dir = dirname(dir)) {
    const at = join(dir, 'node_modules', name);
    if (existsSync(join(at, 'package.json'))) return at;
  }
  return undefined;
}

/** The npm that runs this, or the npm in PATH, unless a distribution has split its package. */
function npmOf(env: Env): string | undefined {
  const inPath = (env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, 'npm'));
  const clis = [env['npm_execpath'] ?? '', ...inPath]
    .filter(existsSync)
    .map((at) => realpathSync(at));
  const packages = clis
    .filter((at) => basename(at) === 'npm-cli.js')
    .map((at) => join(at, '../..'));
  return packages.find((dir) => existsSync(join(dir, 'node_modules/@npmcli/arborist')));
}

function filesOf(dir: string, to: string): TreeFile[] {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => {
    if (!entry.isFile()) return [];
    const from = join(entry.parentPath, entry.name);
    const within = relative(dir, from);
    // packages nested inside are visited separately, if required
    if (to.startsWith('node_modules/') && within.startsWith('node_modules/')) return [];
    const isProgram = (statSync(from).mode & 0o111) !== 0;
    return { path: join(to, within), from, isProgram };
  });
}

function isKept({ path }: TreeFile): boolean {
  if (LICENCE.test(path)) return true;
  const platform = path.endsWith('.node') ? PLATFORM.exec(path)?.[0] : undefined;
  if (platform !== undefined && platform !== `linux-${process.arch}`) return false;
  return !LEFT_OUT.some((pattern) => pattern.test(`/${path}`));
}
