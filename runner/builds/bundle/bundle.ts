/**
 * From a project's sources to one ES module that a function host can import: its own code, its
 * dependencies and our SDK. Guarantee: whatever ends up in the bundle was read from inside the
 * project's directory, after following every link. A bundle exports `definitions` and `manifests`
 * (runner/sdk/README.md). Nothing of the project runs here. Used in the build's jail.
 */
import { access, readFile, realpath } from 'node:fs/promises';
import { basename, extname, isAbsolute, join, relative, sep } from 'node:path';
import { type BuildOptions, context, type Plugin, type PluginBuild } from 'esbuild';
import { type Imports, readImports } from '../install/deno-config.ts';
import { prepared, withoutMap } from './dependency-patches.ts';
import { ofDenoAlone, sideEffects, specifiers } from './specifiers.ts';

/**
 * What stands for our SDK: the published one is replaced by it, so that its runtime loop never
 * starts.
 */
const SDK_NAMES = ['tabern', '@browserbasehq/sdk-functions'];
const SDK_DIRECTORY = join(import.meta.dirname, '../../sdk');
/** `.ts`, or `.js` where the service is compiled. */
const SDK_SUFFIX = extname(import.meta.filename);
const SDK_NAMESPACE = 'tabern';
const REGISTRY = 'tabern:registry';
const DEPENDENCY = /\.[cm]?js$/;
/** Of npm and pnpm, wherever they lie and whatever imports them. */
const SETTINGS = '.npmrc';
const SOURCE = /\.[cm]?[jt]sx?$/;

/**
 * CommonJS dependencies expect these three. The names are ours: a source may declare its own
 * `__dirname`.
 */
const BANNER = [
  "import { createRequire as __tabernCreateRequire } from 'node:module';",
  "import { fileURLToPath as __tabernToPath } from 'node:url';",
  'const __tabernFile = __tabernToPath(import.meta.url);',
  "const __tabernDirectory = __tabernToPath(new URL('.', import.meta.url));",
].join('');

/**
 * esbuild's stand-in for require, which renames a `require` of the project's own; without it the
 * name is the project's.
 */
const NEEDS_REQUIRE = 'typeof require!=="undefined"?require:';
/** Goes before the banner, on its line, so that the source map stays right. */
const REQUIRE = Buffer.from('const require=__tabernCreateRequire(import.meta.url);');

export type BundleOptions = {
  /** The project's directory. */
  root: string;
  /** Path of the entry file within root. */
  entrypoint: string;
  signal: AbortSignal;
};

export type Bundle = {
  /** The module. */
  code: Buffer;
  /** One line each, such as `index.ts:3: message`. */
  warnings: string[];
};

/**
 * Bundles a project whose dependencies are installed. Throws BundleError, or a BuildFailure for
 * deno.json; the signal's reason when it aborts.
 */
export async function bundle(options: BundleOptions): Promise<Bundle> {
  const root = await realpath(options.root);
  const hasTsconfig = await access(join(root, 'tsconfig.json')).then(
    () => true,
    () => false,
  );
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
    // Without one of its own, a project must not be compiled by the settings of some directory
    // above it.
    ...(hasTsconfig ? {} : { tsconfigRaw: '{}' }),
  };
  const first = await compile(base, entry(options.entrypoint), root, options.signal);
  const zod = zodOf(Object.keys(first.inputs));
  const { code, warnings } = zod
    ? await compile(base, entry(options.entrypoint, zod), root, options.signal)
    : first;
  const whole = Buffer.from(code);
  const isNeeded = whole.includes(NEEDS_REQUIRE);
  return { code: isNeeded ? Buffer.concat([REQUIRE, whole]) : whole, warnings };
}

/**
 * The module that becomes the bundle. `zod` names zod 4's core, whose conversion serves schemas
 * that lack their own.
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

/** The core of the zod 4 that the bundle carries, if it carries one. */
function zodOf(inputs: string[]): string | undefined {
  const schemas = inputs.find((path) => /(?:^|\/)zod\/v4\/core\/schemas\.c?js$/.test(path));
  return schemas?.replace(/schemas\.(c?js)$/, 'index.$1');
}

async function compile(base: BuildOptions, source: string, root: string, signal: AbortSignal) {
  signal.throwIfAborted();
  const stdin = { contents: source, resolveDir: root, sourcefile: 'entry', loader: 'js' as const };
  const job = await context({ ...base, stdin });
  const cancel = () => void job.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const { outputFiles, warnings, metafile } = await job.rebuild();
    const code = outputFiles?.[0]?.contents;
    if (!code || !metafile) throw new Error('esbuild gave no output');
    return { code, inputs: metafile.inputs, warnings: lines(warnings, root) };
  } catch (error) {
    signal.throwIfAborted();
    const errors = (error as { errors?: Message[] }).errors;
    if (!errors?.length) throw error;
    throw new BundleError(lines(errors, root).join('\n'));
  } finally {
    signal.removeEventListener('abort', cancel);
    await job.dispose();
  }
}

// --- the plugin ---

function projectPlugin(root: string, imports: Imports): Plugin {
  return {
    name: 'tabern',
    setup(build) {
      sdk(build);
      specifiers(build, root, imports);
      sideEffects(build);
      files(build, root);
    },
  };
}

function sdk(build: PluginBuild): void {
  const names = SDK_NAMES.join('|');
  build.onResolve({ filter: new RegExp(`^(?:${names})$`) }, () => ({
    path: `mod${SDK_SUFFIX}`,
    namespace: SDK_NAMESPACE,
  }));
  build.onResolve({ filter: new RegExp(`^${REGISTRY}$`) }, () => ({
    path: `registry${SDK_SUFFIX}`,
    namespace: SDK_NAMESPACE,
  }));
  build.onResolve({ filter: /^\.\//, namespace: SDK_NAMESPACE }, ({ path }) => ({
    path: path.slice('./'.length),
    namespace: SDK_NAMESPACE,
  }));
  build.onLoad({ filter: /.*/, namespace: SDK_NAMESPACE }, async ({ path }) => ({
    contents: await readFile(join(SDK_DIRECTORY, path), 'utf8'),
    loader: 'ts',
  }));
}

/** The one door for files: refuses what is not the project's, and prepares dependencies. */
function files(build: PluginBuild, root: string): void {
  build.onLoad({ filter: /.*/, namespace: 'file' }, async ({ path }) => {
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

/** Enough to see what is wrong; the rest is usually its consequence. */
const ERRORS_SHOWN_MAX = 10;

/** Of esbuild. */
type Message = {
  text: string;
  location: { file: string; line: number; column: number; length: number; lineText: string } | null;
};
/** Where a sandbox forbids to look at the directories above the project. */
const FORBIDDEN = /^Cannot read directory "(?:\.\.\/)*\.\.(?:\/[^"]*)?": permission denied$/;

/** What the author of the project can mend; each line of the message reads `file:line: message`. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
}

/**
 * What esbuild says, without a path of this machine and without a word of a file that is not the
 * project's.
 */
export function lines(all: Message[], root: string): string[] {
  const messages = all.flatMap(readable);
  if (messages.length === 0 && all.length > 0) return ['the import leads outside the project'];
  const said = messages.slice(0, ERRORS_SHOWN_MAX).map(({ text, location }) => {
    const inside = text.replaceAll(root + sep, '').replaceAll(root, '.');
    if (!location || location.file === 'entry') return inside;
    const { file, line } = location;
    if (isAbsolute(file) || file.startsWith('..')) return 'a file outside the project was refused';
    return `${file}:${line}: ${inside}`;
  });
  const more = messages.length - said.length;
  return more > 0 ? [...said, `and ${more} more`] : said;
}

/**
 * What is forbidden is said as what is not there: the import that led to it, or nothing where none
 * did, since its own error follows.
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
