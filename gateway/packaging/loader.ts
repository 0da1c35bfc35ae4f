/**
 * The loader of the single executable: unpacks its files if needed and replaces itself with the
 * Node that runs them. The process keeps its pid, environment and streams.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { getAsset, getRawAsset } from 'node:sea';
import type { Index } from './archive.ts';
import { CacheError, cacheRoot, ensureTree, PROGRAM } from './cache.ts';

/** EX_CONFIG: the operator must fix a problem. */
const EXIT_OPERATOR = 78;
const NPM = 'lib/node_modules/npm/bin/npm-cli.js';

try {
  const index = JSON.parse(getAsset('index', 'utf8')) as Index;
  const dir = ensureTree(cacheRoot(process.env, homedir), {
    index,
    archive: () => new Uint8Array(getRawAsset('archive') as ArrayBuffer),
    self: process.execPath,
  });
  become(dir);
} catch (error) {
  if (!(error instanceof CacheError)) throw error;
  process.stderr.write(`tabern: ${error.message}\n`);
  process.exitCode = EXIT_OPERATOR;
}

function become(dir: string): void {
  const npm = join(dir, NPM);
  const env = { ...process.env };
  if (existsSync(npm)) env['npm_execpath'] ||= npm;
  const program = join(dir, PROGRAM);
  try {
    accessSync(program, constants.X_OK);
  } catch (cause) {
    throw new CacheError(
      `may not run ${program}: set TABERN_CACHE_DIR to a directory that is not mounted noexec`,
      { cause },
    );
  }
  // does not return, and aborts on failure
  // the executable's own path, for the commands that it prints (cli/own-command.ts)
  const words = [process.execPath, join(dir, 'gateway/tabern.js'), ...process.argv.slice(2)];
  process.execve?.(program, words, env);
}
