/**
 * Runs the tests: `node test/run.ts [-j N] [folder or file]...` (default: test). uvu without its
 * silent passes. One process per *.test.ts, as many at a time as there are cores; files that start
 * Chrome or kill things run one at a time after the others. Short when green, whole when red; the
 * last line is `N passed, N failed`; exit code 1 when anything failed or nothing ran.
 */
import { readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { type FileResult, killAll, runFile } from './support/run/file-run.ts';
import { ensureTools } from './support/run/tools.ts';

/** Ours: above the patience of one wait (test/support/poll.ts), on a machine that is busy. */
const FILE_LIMIT_MS = 240_000;
/** Real Chrome, a build with its npm install, twenty kills: minutes on a slow machine. */
const SLOW_FILE_LIMIT_MS = 900_000;
const SLOW_FOLDERS = ['journey', 'faults'];
/** Each file of these wants the machine for itself. */
const ALONE_FOLDERS = [...SLOW_FOLDERS, join('runner', 'browser'), join('runner', 'sessions')];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', short: 'j', default: String(availableParallelism()) },
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

/** Runs everything; gives the exit code. */
async function main(): Promise<number> {
  const wanted = positionals.length > 0 ? positionals : ['test'];
  const files = [...new Set(wanted.flatMap((path) => testFiles(resolve(path))))].sort();
  const isAlone = (file: string) => isUnder(file, ALONE_FOLDERS);
  const jobs = Math.max(1, Number(values.jobs) || 1);
  const results = [
    ...(await runAll(
      files.filter((file) => !isAlone(file)),
      jobs,
    )),
    ...(await runAll(files.filter(isAlone), 1)),
  ];
  const red = results.filter((one) => one.problems.length > 0);
  if (files.length === 0) console.log('no test file found');
  if (red.length > 0) console.log(`\nred:\n${red.map(headline).join('\n')}`);
  const passed = results.reduce((sum, one) => sum + one.passed, 0);
  const failed = results.reduce((sum, one) => sum + one.failed, 0);
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

/** The files, at most `jobs` at a time, each printed when it ends. */
async function runAll(files: readonly string[], jobs: number): Promise<FileResult[]> {
  const waiting = [...files];
  const results: FileResult[] = [];
  const lane = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const result = await runFile(file, limitOf(file));
      results.push(result);
      console.log(
        result.problems.length > 0 ? `${result.output}${headline(result)}` : headline(result),
      );
    }
  };
  await Promise.all(Array.from({ length: jobs }, lane));
  return results;
}

/** ok    test/core/common/ids.test.ts  4 tests  0.2 s */
function headline({ file, passed, failed, problems, tookMs }: FileResult): string {
  const name = relative(process.cwd(), file);
  const count = `${passed + failed} ${passed + failed === 1 ? 'test' : 'tests'}`;
  const line = `${name}  ${count}  ${(tookMs / 1000).toFixed(1)} s`;
  return problems.length === 0
    ? `ok    ${line}`
    : `FAIL  ${line}\n      ${problems.join('\n      ')}`;
}

/** Every *.test.ts at or under the path, but for installed packages. */
function testFiles(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) {
      return entry.name === 'node_modules' ? [] : testFiles(join(path, entry.name));
    }
    return entry.name.endsWith('.test.ts') ? [join(path, entry.name)] : [];
  });
}

function limitOf(file: string): number {
  if (values['limit-ms']) return Number(values['limit-ms']);
  return isUnder(file, SLOW_FOLDERS) ? SLOW_FILE_LIMIT_MS : FILE_LIMIT_MS;
}

function isUnder(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => file.includes(`${sep}test${sep}${folder}${sep}`));
}
