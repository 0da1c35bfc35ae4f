/**
 * The first step of an installation; works around npm. Plain JavaScript, because the machine's Node
 * may be too old, and packages may be missing. npm 9 and 10 link node_modules/.bin/node, and remove
 * the link with the package for the other architecture. npm 9 to 11 compile a package with a
 * binding.gyp unless the lock file has `gypfile: false`, which they omit when they write it.
 */
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LOCK = join(ROOT, 'package-lock.json');
const BIN = join(ROOT, 'node_modules/.bin');

linkNode();
markPrebuilt();

function linkNode() {
  const program = broughtNode();
  if (program === undefined) return;
  rmSync(join(BIN, 'node'), { force: true });
  symlinkSync(relative(BIN, program), join(BIN, 'node'));
}

/** @returns {string | undefined} */
function broughtNode() {
  try {
    const { resolve } = createRequire(import.meta.url);
    const manifest = resolve(`node-linux-${process.arch}/package.json`);
    return join(dirname(manifest), 'bin/node');
  } catch {
    return undefined; // another platform, or --omit=optional: uses the machine's Node
  }
}

/** Packages with a binding.gyp that include prebuilt binaries. */
function markPrebuilt() {
  if (!existsSync(LOCK)) return;
  const lock = readJson(LOCK);
  const wrong = Object.entries(lock.packages).filter(([path, entry]) => {
    return entry.gypfile !== false && isPrebuilt(join(ROOT, path));
  });
  for (const [, entry] of wrong) entry.gypfile = false;
  if (wrong.length > 0) writeFileSync(LOCK, `${JSON.stringify(lock, null, 2)}\n`);
}

function isPrebuilt(dir) {
  return (
    existsSync(join(dir, 'binding.gyp')) && readJson(join(dir, 'package.json')).gypfile === false
  );
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
