/**
 * Compiles the sources to JavaScript, file by file, next to the files that they read: Node strips
 * no types below node_modules, and older versions do not support `using`. Modules locate threads,
 * SQL and other files relative to themselves, as in a checkout.
 */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { transform } from 'esbuild';

const FOLDERS = ['proto', 'core', 'gateway', 'runner'];
/** Not part of the program: packaging, sources of the contract and of the console, documents. */
const LEFT_OUT = new RegExp(
  [
    '^gateway/(?:packaging/|web/docs/copy.js$|web/console/(?!gen/))',
    '^runner/sdk/package/',
    '^proto/image.binpb$',
    '[.](?:md|proto)$',
  ].join('|'),
);
/** The oldest Node that runs the output. */
const TARGET = 'node22';

/** `import … from "./x.ts"`, `import("./x.ts")`. */
const IMPORTED = /\b((?:from|import)\s*\(?\s*")(\.{1,2}\/[^"\n]+)\.ts"/g;
/** Threads and processes: `new URL("./x.ts", import.meta.url)`. */
const ADDRESSED = /\b(new URL\(")([^"\n]+)\.ts"(?=, import\.meta\.url\))/g;
/** Paths of a function host's files in its sandbox. */
const JAILED = /(")(\/app\/[^"\n]+)\.ts"/g;

/** Compiles `root`, a checkout with a generated contract, or some of its folders, into `out`. */
export async function compile(root: string, out: string, folders = FOLDERS): Promise<void> {
  const files = (await Promise.all(folders.map((folder) => filesIn(root, folder)))).flat();
  const kept = files.filter((path) => !LEFT_OUT.test(path));
  await Promise.all(kept.map((path) => compileFile(root, out, path)));
  await copyFile(join(root, 'package.json'), join(out, 'package.json'));
}

async function compileFile(root: string, out: string, path: string): Promise<void> {
  const to = join(out, path);
  await mkdir(dirname(to), { recursive: true });
  const isSource = path.endsWith('.ts');
  if (!isSource) return await copyFile(join(root, path), to);
  const source = await readFile(join(root, path), 'utf8');
  const { code } = await transform(source, {
    loader: 'ts',
    format: 'esm',
    target: TARGET,
    sourcefile: path,
    logLevel: 'silent',
    // as in tsconfig.json: type-only imports are removed
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  });
  await writeFile(to.replace(/\.ts$/, '.js'), renamed(code));
}

/** Rewrites the names of compiled modules wherever a module refers to another. */
export function renamed(code: string): string {
  return [IMPORTED, ADDRESSED, JAILED].reduce((text, names) => {
    return text.replace(names, '$1$2.js"');
  }, code);
}

async function filesIn(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => {
    return posix.join(parentPath.slice(root.length).replace(/^\//, ''), name);
  });
}
