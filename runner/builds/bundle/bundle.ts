/**
 * Bundles a project's sources, its dependencies and the SDK into one ES module for a function host.
 * Guarantee: every file in the bundle is inside the project's directory, after resolving all links.
 * A bundle exports `definitions` and `manifests` (runner/sdk/README.md). No code of the project
 * runs here. Used in the build's jail.
 */
import { existsSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { basename, extname, isAbsolute, join, relative, sep } from 'node:path';
import { type BuildOptions, build, type Location, type Plugin, type PluginBuild } from 'esbuild';
import { type Imports, readImports } from '../install/deno-config.ts';
import { SDKS } from '../install/project-json.ts';
import { prepared, withoutMap } from './dependency-patches.ts';
import { ofDenoAlone, sideEffects, specifiers } from './specifiers.ts';

/** The service's SDK replaces the published one, so that its runtime loop never starts. */
const SDK_NAMES = [...SDKS, '@browserbasehq/sdk-functions'];
const SDK_DIRECTORY = join(import.meta.dirname, '../../sdk');
/** `.ts`, or `.js` where the service is compiled. */
const SDK_SUFFIX = extname(import.meta.filename);
const SDK_NAMESPACE = 'tabern';
const REGISTRY = 'tabern:registry';
const DEPENDENCY = /\.[cm]?js$/;
/** Settings of npm and pnpm are never bundled, wherever they are. */
const SETTINGS = '.npmrc';
const SOURCE = /\.[cm]?[jt]sx?$/;

/** For CommonJS dependencies. The names are private, because a source may declare `__dirname`. */
const BANNER = [
  "import { createRequire as __tabernCreateRequire } from 'node:module';",
  "import { fileURLToPath as __tabernToPath } from 'node:url';",
  'const __tabernFile = __tabernToPath(import.meta.url);',
  "const __tabernDirectory = __tabernToPath(new URL('.', import.meta.url));",
].join('');

/** esbuild's substitute for require. A bundle with it has renamed any `require` of the project. */
const NEEDS_REQUIRE = 'typeof require!=="undefined"?require:';
/** Prepended on the banner's line, so that the source map stays valid. */
const REQUIRE = Buffer.from('const require=__tabernCreateRequire(import.meta.url);');

export type Bundle = {
  /** The module. */
  code: Buffer;
  /** One line each, such as `index.ts:3: message`. */
  warnings: string[];
};

/**
 * Bundles the project in `directory`, whose dependencies are installed; `entrypoint` is relative to
 * it. Throws BundleError, or a BuildFailure for deno.json.
 */
export async function bundle(directory: string, entrypoint: string): Promise<Bundle> {
  const root = await realpath(directory);
  const base: BuildOptions = {
    absWorkingDir: root,
    outfile: join(root, 'bundle.mjs'),
    write: false,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    sourcemap: 'inline',
    minifyWhitespace: true,
    metafile: true,
    logLevel: 'silent',
    banner: { js: BANNER },
    define: { __filename: '__tabernFile', __dirname: '__tabernDirectory' },
    plugins: [projectPlugin(root, (await readImports(root)) ?? {})],
    // esbuild would otherwise use a tsconfig.json of a directory above the project
    ...(existsSync(join(root, 'tsconfig.json')) ? {} : { tsconfigRaw: '{}' }),
  };
  const first = await compile(base, entry(entrypoint), root);
  const zod = zodOf(Object.keys(first.inputs));
  const { code, warnings } = zod ? await compile(base, entry(entrypoint, zod), root) : first;
  const whole = Buffer.from(code);
  const isNeeded = whole.includes(NEEDS_REQUIRE);
  return { code: isNeeded ? Buffer.concat([REQUIRE, whole]) : whole, warnings };
}

/**
 * The source of the bundle's entry module. `zod` is the path of zod 4's core, which converts
 * schemas that have no conversion of their own.
 */
function entry(entrypoint: string, zod?: string): string {
  const imports = `import ${JSON.stringify(`./${entrypoint}`)};`;
  if (!zod) return `${imports} export { definitions, manifests } from '${REGISTRY}';`;
  return [
    imports,
    `import { definitions, manifests as __tabernManifests } from '${REGISTRY}';`,
    `import { toJSONSchema as __tabernConvert } from ${JSON.stringify(`./${zod}`)};`,
    'export { definitions };',
    'export const manifests = () => __tabernManifests(__tabernConvert);',
  ].join(' ');
}

/** The path of zod 4's core, if the bundle contains zod 4. */
function zodOf(inputs: string[]): string | undefined {
  const schemas = inputs.find((path) => /(?:^|\/)zod\/v4\/core\/schemas\.c?js$/.test(path));
  return schemas?.replace(/schemas\.(c?js)$/, 'index.$1');
}

async function compile(base: BuildOptions, source: string, root: string) {
  const stdin = { contents: source, resolveDir: root, sourcefile: 'entry', loader: 'js' as const };
  try {
    const { outputFiles, warnings, metafile } = await build({ ...base, stdin });
    const code = outputFiles?.[0]?.contents;
    if (!code || !metafile) throw new Error('esbuild gave no output');
    return { code, inputs: metafile.inputs, warnings: lines(warnings, root) };
  } catch (error) {
    const errors = (error as { errors?: Message[] }).errors;
    if (!errors?.length) throw error;
    throw new BundleError(lines(errors, root).join('\n'));
  }
}

// --- the plugin ---

function projectPlugin(root: string, imports: Imports): Plugin {
  return {
    name: 'tabern',
    setup(hooks) {
      sdk(hooks);
      specifiers(hooks, root, imports);
      sideEffects(hooks);
      files(hooks, root);
    },
  };
}

function sdk(hooks: PluginBuild): void {
  const namespace = SDK_NAMESPACE;
  const names = SDK_NAMES.join('|');
  const ofSdk = (path: string) => ({ path, namespace });
  hooks.onResolve({ filter: new RegExp(`^(?:${names})$`) }, () => ofSdk(`mod${SDK_SUFFIX}`));
  hooks.onResolve({ filter: new RegExp(`^${REGISTRY}$`) }, () => ofSdk(`registry${SDK_SUFFIX}`));
  hooks.onResolve({ filter: /^\.\//, namespace }, ({ path }) => ofSdk(path.slice('./'.length)));
  hooks.onLoad({ filter: /.*/, namespace }, async ({ path }) => ({
    contents: await readFile(join(SDK_DIRECTORY, path), 'utf8'),
    loader: 'ts',
  }));
}

/** Loads all files: refuses those outside the project, and patches dependencies. */
function files(hooks: PluginBuild, root: string): void {
  hooks.onLoad({ filter: /.*/, namespace: 'file' }, async ({ path }) => {
    const real = await realpath(path);
    const within = relative(root, real);
    if (within.startsWith('..') || isAbsolute(within)) return { errors: [{ text: outside(path) }] };
    if (basename(real) === SETTINGS) return { errors: [{ text: `${SETTINGS} may hold a token` }] };
    const isOwn = !within.includes('node_modules');
    if (!(isOwn ? SOURCE : DEPENDENCY).test(real)) return undefined;
    const text = await readFile(real, 'utf8');
    if (!isOwn) return { contents: prepared(real, text), loader: 'js' };
    const warnings = ofDenoAlone(text, within);
    return { contents: withoutMap(text), loader: 'default', ...(warnings && { warnings }) };
  });
}

function outside(path: string): string {
  const name = /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/.exec(path)?.[1];
  return name
    ? `the package "${name}" is not installed in the project; add it to package.json`
    : 'the import leads outside the project';
}

/** Later errors are usually consequences of the first ones. */
const ERRORS_SHOWN_MAX = 10;

/** Of esbuild. */
type Message = { text: string; location: Location | null };
/** The sandbox forbids esbuild to read the directories above the project. */
const FORBIDDEN = /^Cannot read directory "(?:\.\.\/)*\.\.(?:\/[^"]*)?": permission denied$/;

/** Defects of the sources. Each line of the message is `file:line: message`. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
}

/** esbuild's messages without paths of this machine or text of files outside the project. */
function lines(all: Message[], root: string): string[] {
  const messages = all.flatMap(readable);
  if (messages.length === 0 && all.length > 0) return ['the import leads outside the project'];
  const shown = messages.slice(0, ERRORS_SHOWN_MAX).map(({ text, location }) => {
    const inside = text.replaceAll(root + sep, '').replaceAll(root, '.');
    if (!location || location.file === 'entry') return inside;
    const { file, line } = location;
    if (isAbsolute(file) || file.startsWith('..')) return 'a file outside the project was refused';
    return `${file}:${line}: ${inside}`;
  });
  const more = messages.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

/**
 * Reports a forbidden directory as an import that cannot be resolved. Without an import the message
 * is dropped, because the import's own error follows.
 */
function readable({ text, location }: Message): Message[] {
  if (!FORBIDDEN.test(text)) return [{ text, location }];
  if (location === null) return [];
  const { column, length, lineText } = location;
  const named = Buffer.from(lineText)
    .subarray(column, column + length)
    .toString('utf8');
  const name = named.replace(/^(['"`])(.*)\1$/, '$2');
  return [{ text: `Could not resolve ${JSON.stringify(name)}`, location }];
}
