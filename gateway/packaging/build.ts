/**
 * `npm run binary`: builds dist/tabern, one file for machines without Node. `--full` builds
 * dist/tabern-full, which includes a Chrome; `--out FILE` sets another path.
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { build } from 'esbuild';
import { pack } from './archive.ts';
import { bundle } from './bundle.ts';
import { FUSE } from './cache.ts';
import { compile } from './compile.ts';
import { treeOf } from './tree.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const LOADER = join(import.meta.dirname, 'loader.ts');
const MIB = 1024 * 1024;

const { values } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const out = resolve(values.out ?? join(ROOT, 'dist', values.full ? 'tabern-full' : 'tabern'));
mkdirSync(dirname(out), { recursive: true });
// in the same directory, as a rename cannot cross file systems
const work = mkdtempSync(`${out}.`);
try {
  await make(work, values.full);
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function make(dir: string, withChrome: boolean): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  const compiled = join(dir, 'compiled');
  await compile(ROOT, compiled);
  await bundle(ROOT, compiled);
  const tree = treeOf({ root: ROOT, compiled, env: process.env, withChrome });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const { index, bytes, archive } = pack(tree, { version, node: process.version });
  say(`${tree.length} files, ${mib(bytes)} MiB, packed ${mib(archive.byteLength)} MiB`);
  if (!tree.some(({ path }) => path.startsWith('lib/node_modules/npm/'))) {
    say('npm is not included: builds that install packages need the npm of the machine');
  }
  writeFileSync(join(dir, 'index.json'), JSON.stringify(index));
  writeFileSync(join(dir, 'archive'), archive);
  const bundled = join(dir, 'loader.cjs');
  await build({ entryPoints: [LOADER], outfile: bundled, bundle: true, platform: 'node' });
  const program = await inject(dir, bundled);
  renameSync(program, out);
  say(`${out}: ${mib(statSync(out).size)} MiB, Node ${process.version}`);
}

/** A copy of the current Node with the loader and its assets inside. */
async function inject(dir: string, main: string): Promise<string> {
  const blob = join(dir, 'sea.blob');
  const program = join(dir, 'program');
  const settings = {
    // relative: stack traces must not contain the path of the build machine
    main: relative(dir, main),
    output: blob,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    // NODE_OPTIONS are for the Node that the loader starts
    execArgvExtension: 'none',
    assets: { index: join(dir, 'index.json'), archive: join(dir, 'archive') },
  };
  writeFileSync(join(dir, 'sea.json'), JSON.stringify(settings));
  await run(process.execPath, ['--experimental-sea-config', 'sea.json'], { cwd: dir });
  copyFileSync(process.execPath, program);
  chmodSync(program, 0o755);
  // before the injection, which it would strip; saves 18 MB
  await run('strip', ['--strip-unneeded', program]).catch(() => undefined);
  const postject = join(ROOT, 'node_modules/postject/dist/cli.js');
  const words = [program, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE];
  await run(process.execPath, [postject, ...words]);
  return program;
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
