/**
 * Builds the console, a step of the installation: gateway/web/console/gen/index.html, dev.html for
 * `tabern dev`, and their assets under names with a hash of their content, each with a brotli copy
 * beside it.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { type BuildOptions, build, type Plugin } from 'esbuild';

const SOURCE = join(import.meta.dirname, '../web/console');
const ASSETS_URL = '/console/assets/';
/** Threads are built first, since the page contains their names. */
const THREADS = { log: 'data/log/thread.ts', changes: 'data/changes-thread.ts' };
const PAGE = { console: 'app/main.tsx', style: 'app/style.css', icon: 'app/icon.svg' };

const DEV = { dev: 'app/dev.tsx' };

const COMMON: BuildOptions = {
  absWorkingDir: SOURCE,
  bundle: true,
  minify: true,
  format: 'esm',
  // the browsers of the last two years
  target: ['chrome125', 'firefox126', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  loader: { '.svg': 'copy' },
  entryNames: '[name]-[hash]',
  chunkNames: 'part-[hash]',
  splitting: true,
  legalComments: 'eof',
  metafile: true,
  logLevel: 'warning',
};

/**
 * Pages that are loaded when they are opened import the whole first load, which is there already.
 * Otherwise each set of pages that share a module makes a part of its own, and the first load is a
 * request for each.
 */
const FIRST_LOAD_IS_ONE: Plugin = {
  name: 'first-load-is-one',
  setup({ onLoad }) {
    // read before the build, so that the order in which it loads files changes nothing
    const lazy = lazyPages();
    onLoad({ filter: /\.tsx$/ }, ({ path }) => {
      if (!lazy.has(path)) return undefined;
      const first = JSON.stringify(join(SOURCE, PAGE.console));
      return { contents: `${readFileSync(path, 'utf8')}\nimport ${first};`, loader: 'tsx' };
    });
  },
};

/** Files that are loaded when they are opened. */
function lazyPages(): ReadonlySet<string> {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => name.endsWith('.tsx'));
  const found = sources.flatMap((name) => {
    const text = readFileSync(join(SOURCE, name), 'utf8');
    const loads = [...text.matchAll(/\bimport\('([^']+)'\)/g)];
    return loads.map(([, path = '']) => join(SOURCE, dirname(name), path));
  });
  return new Set(found);
}

/** Writes the console to the directory `out`, which is emptied first. */
export async function buildConsole(out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true });
  const assets = join(out, 'assets');
  mkdirSync(assets, { recursive: true });
  const threads = await bundle(assets, THREADS, {});
  const page = await bundle(assets, PAGE, {
    LOG_THREAD: JSON.stringify(threads.get('log.js')),
    CHANGES_THREAD: JSON.stringify(threads.get('changes.js')),
  });
  // of its own: the page of `tabern dev` loads nothing of the console's pages
  const dev = await bundle(assets, DEV, { LOG_THREAD: '""', CHANGES_THREAD: '""' });
  writePage(out, 'index.html', page);
  writePage(out, 'dev.html', new Map([...page, ...dev]));
  for (const path of [join(out, 'index.html'), join(out, 'dev.html'), ...filesOf(assets)]) {
    writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path)));
  }
}

/** The page, with the built names of its assets. */
function writePage(out: string, name: string, built: ReadonlyMap<string, string>): void {
  const template = readFileSync(join(SOURCE, name), 'utf8');
  const html = template.replaceAll(/\/console\/assets\/([\w.]+)/g, (_, asset: string) => {
    const url = built.get(asset);
    if (url === undefined) throw new Error(`${name} names ${asset}, which is not built`);
    return url;
  });
  writeFileSync(join(out, name), html);
}

/**
 * The URL of each output, by its name without the hash. An entry point that other pages import is
 * in a part, and its own output only imports that part: the URL is the part's, one request less.
 */
async function bundle(
  outdir: string,
  entryPoints: Record<string, string>,
  define: Record<string, string>,
): Promise<ReadonlyMap<string, string>> {
  // the page of `tabern dev` is none of these
  const plugins = entryPoints === PAGE ? [FIRST_LOAD_IS_ONE] : [];
  const { metafile } = await build({ ...COMMON, entryPoints, outdir, define, plugins });
  const outputs = Object.entries(metafile?.outputs ?? {});
  return new Map(
    outputs.map(
      ([
        path,
        {
          entryPoint,
          inputs,
          imports: [part],
        },
      ]) => {
        const isOnlyImport = entryPoint !== undefined && Object.keys(inputs).length === 0;
        const name = basename(isOnlyImport && part ? part.path : path);
        return [basename(path).replace(/-[A-Z0-9]{8}\./, '.'), ASSETS_URL + name];
      },
    ),
  );
}

function filesOf(dir: string): string[] {
  return readdirSync(dir).map((name) => join(dir, name));
}

if (import.meta.main) await buildConsole(join(SOURCE, 'gen'));
