/**
 * Runs the tests: `node test/run.ts [options] [folder or file]...` (default: test).
 *
 *   -j, --jobs N       files at a time (default: one a core, and one more that waits)
 *   --all              whole matrices and the larger fault rounds
 *   --changed          only files that the changes since --since can reach, the nearest first
 *   --since REV        what --changed compares with (default: where the branch left its upstream)
 *   --limit-ms MS      time limit of a file
 *
 * One process per *.test.ts. uvu without its silent passes. Slow folders begin; the files that need
 * the machine for themselves run last, one at a time. The output of a red file is printed whole.
 * The last line is `N passed, N failed`; exit code 1 when anything failed or nothing ran.
 */
import { readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { changedFiles } from './support/run/changes.ts';
import { type FileResult, killAll, runFile } from './support/run/file-run.ts';
import { openOutput } from './support/run/output.ts';
import { distancesTo, sourceGraph } from './support/run/reach.ts';
import { ensureTools } from './support/run/tools.ts';

const ROOT = resolve(import.meta.dirname, '..');
/** Ours: above the limit of one wait (test/support/poll.ts), on a loaded machine. */
const FILE_LIMIT_MS = 240_000;
/** Real Chrome, a build with its npm install, twenty kills: minutes on a slow machine. */
const SLOW_FILE_LIMIT_MS = 900_000;
const SLOW_FOLDERS = ['journey', 'faults'];
/** The files that run alone. */
const ALONE: ReadonlySet<string> = new Set(
  [
    'faults/head-of-line', // times the round trips of a second tenant beside floods
  ].map((name) => join(ROOT, 'test', `${name}.test.ts`)),
);
for (const file of ALONE) statSync(file); // throws for a name that no file has any more

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', short: 'j', default: String(availableParallelism() + 1) },
    all: { type: 'boolean', default: false },
    changed: { type: 'boolean', default: false },
    since: { type: 'string' },
    'limit-ms': { type: 'string' },
  },
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(1);
  });
}
process.exitCode = positionals.length > 0 || ensureTools() ? await main() : 1;

/** Runs the selected files; returns the exit code. */
async function main(): Promise<number> {
  if (values.all) process.env['TABERN_TEST_ALL'] = '1';
  const wanted = positionals.length > 0 ? positionals : ['test'];
  const perPath = wanted.map((path) => ({ path, own: testFiles(resolve(path)) }));
  const empty = perPath.filter(({ own }) => own.length === 0).map(({ path }) => path);
  if (empty.length > 0) {
    console.log(`no test file found at ${empty.join(', ')}\n\n0 passed, 0 failed`);
    return 1;
  }
  const found = [...new Set(perPath.flatMap(({ own }) => own))].sort();
  const files = values.changed ? reached(found) : found;
  const output = openOutput(files.length);
  const jobs = Math.max(1, Number(values.jobs) || 1);
  const alone = files.filter((file) => ALONE.has(file));
  const together = files.filter((file) => !ALONE.has(file));
  // the last file to end is then a short one; the nearest first is kept
  if (!values.changed) together.sort((a, b) => Number(isSlow(b)) - Number(isSlow(a)));
  const results = [...(await runAll(together, jobs, output)), ...(await runAll(alone, 1, output))];
  const { passed, failed } = output.end(results);
  return failed > 0 || (passed === 0 && files.length === found.length) ? 1 : 0;
}

/** Runs the files, at most `jobs` at a time. */
async function runAll(
  files: readonly string[],
  jobs: number,
  output: ReturnType<typeof openOutput>,
): Promise<FileResult[]> {
  const waiting = [...files];
  const results: FileResult[] = [];
  const lane = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      output.started(file);
      const result = await runFile(file, limitOf(file));
      results.push(result);
      output.ended(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, lane));
  return results;
}

/** The files that the changes can reach, the nearest first. */
function reached(files: readonly string[]): string[] {
  const changed = changedFiles(ROOT, values.since);
  const distances = distancesTo(sourceGraph(ROOT), changed);
  const near = files.filter((file) => distances.has(file));
  console.log(
    `${changed.length} files changed; ${near.length} of ${files.length} test files reach`,
  );
  return near.sort((a, b) => (distances.get(a) ?? 0) - (distances.get(b) ?? 0));
}

/** Every *.test.ts at or under the path, except in installed packages; none where nothing is. */
function testFiles(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  if (found.isFile()) return [path];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) {
      return entry.name === 'node_modules' ? [] : testFiles(join(path, entry.name));
    }
    return entry.name.endsWith('.test.ts') ? [join(path, entry.name)] : [];
  });
}

function limitOf(file: string): number {
  if (values['limit-ms']) return Number(values['limit-ms']);
  return isSlow(file) ? SLOW_FILE_LIMIT_MS : FILE_LIMIT_MS;
}

function isSlow(file: string): boolean {
  return SLOW_FOLDERS.some((folder) => file.includes(`${sep}test${sep}${folder}${sep}`));
}
