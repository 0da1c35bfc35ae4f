/**
 * Runs the tests: `node test/run.ts [options] [folder or file]...` (default: test).
 *
 *   -j, --jobs N       files at a time, at most (default: one a core, and one more that waits)
 *   --all              whole matrices and the larger fault rounds
 *   --split            services with their roles apart (support/service/apart/split.ts), in place
 *                      of `tabern serve`
 *   --later MIN        then the files of SPLIT once more with the roles apart, and those of LATER,
 *                      which else run by --all or by their names
 *   --then-all MIN     then the green files that --all makes larger once more, whole; of both none
 *                      begins later than MIN minutes after the start of the run
 *   --changed          only files that the changes since --since can reach, the nearest first
 *   --since REV        what --changed compares with (default: where the branch left its upstream)
 *   --limit-ms MS      time limit of a file
 *
 * One process per *.test.ts. uvu without its silent passes. Files of slow folders run beside quick
 * ones (support/run/lanes.ts); the files that need the machine for themselves run last, one at a
 * time. The output of a red file is printed whole.
 * The last line is `N passed, N failed`; exit code 1 when anything failed or nothing ran.
 */
import { readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { changedFiles } from './support/run/changes.ts';
import { type FileResult, killAll, runFile } from './support/run/file-run.ts';
import { runInLanes } from './support/run/lanes.ts';
import { removeTemporaryFiles } from './support/run/memory.ts';
import { type Output, openOutput } from './support/run/output.ts';
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
    'runner/sessions/relay/cost', // bounds CPU time, of which shared cores take more
    'journey/console/session', // compares the pictures of a recording with a clock
  ].map((name) => join(ROOT, 'test', `${name}.test.ts`)),
);
/** Rounds of faults, upgrades and installations, of minutes each; the first begin first. */
const LATER: ReadonlySet<string> = new Set(
  [
    'faults/core-away',
    'faults/machines/kills',
    'journey/operations/upgrade/load',
    'journey/operations/upgrade/ends',
    'journey/install/bare',
    'journey/functions/published-clis',
    'faults/stalled-runner',
    'faults/clock-jump',
    'faults/webhooks',
    'journey/install/recipes',
    'journey/install/image',
    'journey/install/init',
    'journey/install/functions-package',
    'journey/install/fonts',
  ].map((name) => join(ROOT, 'test', `${name}.test.ts`)),
);
/**
 * Journeys that run once more with the roles apart: sessions, files, events, schedules and consoles
 * whose requests reach different gateways and cores. `npm run test:split` runs all like that.
 */
const SPLIT: ReadonlySet<string> = new Set(
  [
    'journey/operations/revocation',
    'journey/sessions/events',
    'journey/sessions/files',
    'journey/functions/sdk',
    'journey/functions/schedules',
    'journey/console/sessions-list',
  ].map((name) => join(ROOT, 'test', `${name}.test.ts`)),
);
// Throws for a name that no file has now.
for (const file of [...ALONE, ...LATER, ...SPLIT]) statSync(file);
/** Deno opens no path below /dev, where memory is: what runs handlers or builds in it. */
const ON_DISK = [
  'runner/',
  'journey/functions/deno-runner',
  'faults/stalled-runner',
  'faults/head-of-line',
].map((name) => join(ROOT, 'test', name));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', short: 'j', default: String(availableParallelism() + 1) },
    all: { type: 'boolean', default: false },
    split: { type: 'boolean', default: process.env['TABERN_TEST_TOPOLOGY'] === 'split' },
    later: { type: 'string' },
    'then-all': { type: 'string' },
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
removeTemporaryFiles();

/** Runs the selected files; returns the exit code. */
async function main(): Promise<number> {
  const wanted = positionals.length > 0 ? positionals : ['test'];
  const perPath = wanted.map((path) => ({ path, own: testFiles(resolve(path)) }));
  const empty = perPath.filter(({ own }) => own.length === 0).map(({ path }) => path);
  if (empty.length > 0) {
    console.log(`no test file found at ${empty.join(', ')}\n\n0 passed, 0 failed`);
    return 1;
  }
  const found = [...new Set(perPath.flatMap(({ own }) => own))].sort();
  const all = values.changed ? reached(found) : found;
  const ofAll = (names: ReadonlySet<string>) => [...names].filter((file) => all.includes(file));
  const isSelected = positionals.length > 0;
  const later = values.all || isSelected ? [] : ofAll(LATER);
  const split = values.split || isSelected ? [] : ofAll(SPLIT);
  const files = all.filter((file) => !later.includes(file));
  const output = openOutput(files.length);
  const jobs = Math.max(1, Number(values.jobs) || 1);
  const alone = files.filter((file) => ALONE.has(file));
  const together = files.filter((file) => !ALONE.has(file));
  const own = { isWhole: values.all, isSplit: values.split, mayBegin: () => true };
  const results = await runAll(together, { jobs, output }, own);
  results.push(...(await runAll(alone, { jobs: 1, output }, own)));
  const late = values.all ? own : { ...own, ...until(values.later) };
  results.push(...(await runAll(split, { jobs, output }, { ...late, isSplit: true })));
  results.push(...(await runAll(later, { jobs, output }, late)));
  const ran = (files: readonly string[], isSplit: boolean) =>
    results.filter((one) => files.includes(one.file) && one.isSplit === isSplit).length;
  const left = { split: split.length - ran(split, true), later: later.length - ran(later, false) };
  if (left.split > 0) console.log(`${left.split} files of SPLIT did not run with the roles apart`);
  if (left.later > 0) console.log(`${left.later} files of LATER, which take minutes, did not run`);
  const { passed, failed, skipped } = output.end(await enlarged(results, { jobs, output }));
  return failed > 0 || (passed + skipped === 0 && all.length === found.length) ? 1 : 0;
}

/**
 * Runs green files once more that are larger in a whole run, as long as --then-all lets them begin.
 * The second result takes the place of the first.
 */
async function enlarged(results: readonly FileResult[], to: Lanes): Promise<FileResult[]> {
  if (values['then-all'] === undefined) return [...results];
  const isLarger = (one: FileResult) => one.isSized && !one.isWhole && !one.isSplit;
  const larger = results.filter((one) => isLarger(one) && one.problems.length === 0);
  const files = larger.map(({ file }) => file);
  const { mayBegin } = until(values['then-all']);
  const whole = await runAll(files, to, { isWhole: true, isSplit: false, mayBegin });
  console.log(`${whole.length} of ${files.length} files once more, at the size of --all`);
  const again = new Set(whole.map(({ file }) => file));
  return [...results.filter((one) => one.isSplit || !again.has(one.file)), ...whole];
}

/** Whether files may begin: until so many minutes after the start of the run; never without. */
function until(minutes = '0'): { mayBegin: () => boolean } {
  const endsMs = Number(minutes) * 60_000;
  return { mayBegin: () => performance.now() < endsMs };
}

type Lanes = { jobs: number; output: Output };
type Way = { isWhole: boolean; isSplit: boolean; mayBegin: () => boolean };

/** Runs the files, at most `jobs` at a time; none that may not begin any more. */
async function runAll(
  files: readonly string[],
  { jobs, output }: Lanes,
  { isWhole, isSplit, mayBegin }: Way,
): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const slow = files.filter(isSlow);
  const quick = files.filter((file) => !isSlow(file));
  await runInLanes({ slow, quick }, { jobs, mayBegin }, async (file) => {
    output.started(file);
    const isOnDisk = ON_DISK.some((path) => file.startsWith(path));
    const result = await runFile(file, { limitMs: limitOf(file), isWhole, isSplit, isOnDisk });
    results.push(result);
    output.ended(result);
  });
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
