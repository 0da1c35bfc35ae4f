/**
 * Bundles the compiled program: its own modules, and the packages that each start loads. Loading
 * some 1,400 modules in two processes took a quarter of the CPU time until the first session. Only
 * the single executable is bundled: with the npm package, a user who overrides a dependency would
 * still run the bundled one.
 *
 * The unbundled modules stay. Processes and threads that are not in ENTRIES run them.
 */
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { POOL_THREAD, THREADS } from './threads.ts';

const ENTRIES = ['gateway/bin.ts', POOL_THREAD, ...THREADS].map((path) =>
  path.replace(/\.ts$/, '.js'),
);
/**
 * Packages in plain JavaScript. All others are external: they have addons, threads or files of
 * their own. Bundled, pino's transports and the channelz and ORCA services of grpc-js do not work:
 * they look for files beside them.
 */
export const BUNDLED = [
  ...['@bufbuild/protobuf', '@grpc/grpc-js', '@koa/router', 'ajv', 'busboy', 'croner', 'koa'],
  ...['lru-cache', 'pino', 're2js', 'socks'],
];
/** Dependencies of these that stay external: thread-stream starts a thread from its own file. */
const EXTERNAL = ['thread-stream'];
export const FOLDER = 'bundle';
/** The module that returns the URL of another module's unbundled file. */
const ORIGIN = 'tabern:origin';
const ORIGIN_FILE = 'origin.js';
const ORIGIN_CODE = `import { fileURLToPath } from 'node:url';
export const urlOf = (path) => new URL('../' + path, import.meta.url).href;
export const pathOf = (path) => fileURLToPath(urlOf(path));
`;
/** For packages in CommonJS. `__createRequire`: modules import `createRequire` themselves. */
const REQUIRE = [
  `import { createRequire as __createRequire } from 'node:module';`,
  'const require = __createRequire(import.meta.url);',
];
/** Of an import: `ajv/dist/2020.js` -> `ajv`. */
export const PACKAGE_NAME = /^(?:@[^/]+\/)?[^/]+/;

/** `compiled` is a directory filled by compile.ts; packages are those of `root`. */
export async function bundle(root: string, compiled: string): Promise<void> {
  // all paths in the output are relative to `compiled`: equal sources have equal bundles
  const link = join(compiled, 'node_modules');
  await symlink(join(root, 'node_modules'), link);
  try {
    await build({
      absWorkingDir: compiled,
      preserveSymlinks: true,
      entryPoints: Object.fromEntries(ENTRIES.map((path) => [nameOf(path), `./${path}`])),
      outdir: FOLDER,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: `node${process.versions.node}`,
      banner: { js: REQUIRE.join(' ') },
      define: {
        'import.meta.url': '__url',
        'import.meta.filename': '__filename',
        'import.meta.dirname': '__dirname',
      },
      plugins: [origins(compiled), packages(compiled)],
      logLevel: 'error',
    });
  } finally {
    await rm(link);
  }
  await writeFile(join(compiled, FOLDER, ORIGIN_FILE), ORIGIN_CODE);
  await Promise.all(ENTRIES.map((path) => writeStub(compiled, path)));
}

const nameOf = (path: string) => path.replace(/\.js$/, '').replaceAll('/', '-');

/** Replaces the module by a re-export of its bundle. */
async function writeStub(compiled: string, path: string): Promise<void> {
  const file = join(compiled, path);
  const to = relative(dirname(path), join(FOLDER, `${nameOf(path)}.js`));
  const hasDefault = /^export default|\bas default\b/m.test(await readFile(file, 'utf8'));
  const lines = [`export * from '${to}';`, hasDefault ? `export { default } from '${to}';` : ''];
  await writeFile(file, lines.join('\n'));
}

/** The path of an own module in `compiled`; undefined for a module of a package. */
function ownPath(compiled: string, file: string): string | undefined {
  const path = relative(compiled, file);
  return path.startsWith('..') || path.startsWith('node_modules/') ? undefined : path;
}

/** Sets `import.meta` of a bundled module to its unbundled file. */
function origins(compiled: string): Plugin {
  return {
    name: 'origins',
    setup({ onResolve, onLoad }) {
      const origin = { path: `./${ORIGIN_FILE}`, external: true };
      onResolve({ filter: new RegExp(`^${ORIGIN}$`) }, () => origin);
      onLoad({ filter: /\.m?js$/ }, async ({ path: file }) => {
        const path = ownPath(compiled, file);
        const code = await readFile(file, 'utf8');
        if (!/\bimport\.meta\.(?:url|filename|dirname)\b/.test(code)) return undefined;
        if (path === undefined) return { errors: [{ text: `${file} uses import.meta` }] };
        const header = [
          `import { urlOf as __urlOf, pathOf as __pathOf } from '${ORIGIN}';`,
          `const __url = __urlOf('${path}'), __filename = __pathOf('${path}');`,
          `const __dirname = __pathOf('${dirname(path)}');`,
        ];
        return { contents: `${header.join(' ')}\n${code}`, resolveDir: dirname(file) };
      });
    },
  };
}

/** Bundles BUNDLED with their dependencies; other packages are external. */
function packages(compiled: string): Plugin {
  return {
    name: 'packages',
    setup({ onResolve }) {
      onResolve({ filter: /^[^./]/ }, ({ path, importer }) => {
        const name = PACKAGE_NAME.exec(path)?.[0] ?? '';
        if (path.startsWith('node:') || path === ORIGIN) return undefined;
        const isOwn = ownPath(compiled, importer) !== undefined;
        const isExternal = isOwn ? !BUNDLED.includes(name) : EXTERNAL.includes(name);
        return isExternal ? { external: true } : undefined;
      });
    },
  };
}
