/**
 * Bundles the compiled program: its own modules, and the packages of many modules that each start
 * loads. Loading some 1,400 modules in two processes and three threads took a sixth of the CPU time
 * until the first session. Only the single executable is bundled: in an npm package, it would hide
 * the packages from those who replace one.
 *
 * The modules stay beside the bundle, for processes and threads that are no entry of it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';

/** The program, and the threads that each service has. */
const ENTRIES = [
  'gateway/bin.js',
  'core/contexts/key-thread.js',
  'core/store/sqlite/thread.js',
  'core/validation/validator-thread.js',
  'gateway/webhooks/sender-thread.js',
  'runner/leases/lease-thread.js',
];
/** Others stay packages: they have addons, threads or files of their own, or few modules. */
export const BUNDLED = [
  ...['@bufbuild/protobuf', '@grpc/grpc-js', '@koa/router', 'ajv', 'busboy', 'croner', 'koa'],
  ...['lru-cache', 'pino', 're2js', 'socks'],
];
/** Of bundled packages: it starts a thread from a file of its own. */
const KEPT = ['thread-stream'];
const FOLDER = 'bundle';
/** The module through which bundled modules find where they were. */
const PLACE = 'tabern:place';
/** Packages in CommonJS require modules of Node. Its name may not be that of a module's import. */
const REQUIRE = [
  `import { createRequire as __createRequire } from 'node:module';`,
  'const require = __createRequire(import.meta.url);',
];
const PACKAGE_NAME = /^(?:@[^/]+\/)?[^/]+/;

/** `compiled` is a directory filled by compile.ts; packages are those of `root`. */
export async function bundle(root: string, compiled: string): Promise<void> {
  const names = ENTRIES.map((path) => [nameOf(path), join(compiled, path)]);
  await build({
    entryPoints: Object.fromEntries(names),
    outdir: join(compiled, FOLDER),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: `node${process.versions.node}`,
    nodePaths: [join(root, 'node_modules')],
    banner: { js: REQUIRE.join(' ') },
    define: {
      'import.meta.url': '__url',
      'import.meta.filename': '__filename',
      'import.meta.dirname': '__dirname',
    },
    plugins: [places(compiled), packages(compiled)],
    logLevel: 'error',
  });
  const place = [
    `import { fileURLToPath } from 'node:url';`,
    `export const place = (path) => new URL('../' + path, import.meta.url).href;`,
    'export const pathOf = fileURLToPath;',
  ];
  await writeFile(join(compiled, FOLDER, 'place.js'), place.join('\n'));
  await Promise.all(ENTRIES.map((path) => refer(compiled, path)));
}

const nameOf = (path: string) => path.replace(/\.js$/, '').replaceAll('/', '-');

/** Makes the module one that loads its bundle. */
async function refer(compiled: string, path: string): Promise<void> {
  const file = join(compiled, path);
  const to = relative(dirname(path), join(FOLDER, `${nameOf(path)}.js`));
  const hasDefault = /^export default|\bas default\b/m.test(await readFile(file, 'utf8'));
  const lines = [`export * from '${to}';`, hasDefault ? `export { default } from '${to}';` : ''];
  await writeFile(file, lines.join('\n'));
}

/** A bundled module finds files as if it were where it was compiled. */
function places(compiled: string): Plugin {
  return {
    name: 'places',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: new RegExp(`^${PLACE}$`) }, () => ({
        path: './place.js',
        external: true,
      }));
      onLoad({ filter: /\.js$/ }, async ({ path }) => {
        const own = relative(compiled, path);
        if (own.startsWith('..') || path.includes('/node_modules/')) return undefined;
        const code = await readFile(path, 'utf8');
        if (!code.includes('import.meta.')) return undefined;
        const header = [
          `import { place as __place, pathOf as __pathOf } from '${PLACE}';`,
          `const __url = __place('${own}'), __filename = __pathOf(__url);`,
          `const __dirname = __pathOf(__place('${dirname(own)}'));`,
        ];
        return { contents: `${header.join(' ')}\n${code}`, resolveDir: dirname(path) };
      });
    },
  };
}

/** Of packages, those of the list are bundled with all that they import. */
function packages(compiled: string): Plugin {
  return {
    name: 'packages',
    setup({ onResolve }) {
      onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
        const name = PACKAGE_NAME.exec(path)?.[0] ?? '';
        if (kind === 'entry-point' || path.startsWith('node:') || path === PLACE) return undefined;
        const isOwn = importer.startsWith(compiled) && !importer.includes('/node_modules/');
        const isKept = isOwn ? !BUNDLED.includes(name) : KEPT.includes(name);
        return isKept ? { external: true } : undefined;
      });
    },
  };
}
