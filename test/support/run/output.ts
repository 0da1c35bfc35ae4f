/**
 * What a run prints: a line for each file, the whole output of a red one, on a terminal one line of
 * progress, and at the end the slowest files, the time of each folder and the counts.
 */
import { dirname, relative } from 'node:path';
import type { FileResult } from './file-run.ts';
import { processorUse, type Use, useSince } from './processors.ts';

const SLOWEST_MAX = 10;
/** A shorter run prints no lists of times: its lines are few enough to read. */
const SUMMARY_MIN_FILES = 20;
/** Printed by a test with random input; the same setting repeats the input. */
const SEED = /^(TABERN_\w*SEED=\d+)$/m;

export type Output = {
  started(file: string): void;
  ended(result: FileResult): void;
  /** Prints the summary; returns its counts. */
  end(results: readonly FileResult[]): { passed: number; failed: number; skipped: number };
};

type Times = Pick<FileResult, 'tookMs' | 'cpuMs'>;
type Terminal = { isTTY?: boolean; columns?: number; write(text: string): unknown };

/** The output of a run of `total` files. */
export function openOutput(total: number, terminal: Terminal = process.stdout): Output {
  const startedAt = performance.now();
  const before = processorUse();
  const running = new Set<string>();
  const count = { files: 0, red: 0 };

  function print(text: string): void {
    terminal.write(`${terminal.isTTY ? '\r\x1b[K' : ''}${text}\n`);
  }

  function progress(): void {
    if (!terminal.isTTY) return;
    const parts = [`${count.files} of ${total} files`, clock(performance.now() - startedAt)];
    if (count.red > 0) parts.push(`${count.red} red`);
    const line = [...parts, [...running].map(nameOf).join(' ')].join('  ');
    terminal.write(`\r\x1b[K${line.slice(0, (terminal.columns ?? 80) - 1)}`);
  }

  return {
    started(file) {
      running.add(file);
      progress();
    },
    ended(result) {
      running.delete(result.file);
      count.files += 1;
      if (result.problems.length > 0) count.red += 1;
      print(result.problems.length > 0 ? result.output + redLines(result) : headline(result));
      progress();
    },
    end(results) {
      const red = results.filter((one) => one.problems.length > 0);
      if (results.length >= SUMMARY_MIN_FILES) print(summary(results, before));
      if (red.length > 0) print(`\nred:\n${red.map(redLines).join('\n')}`);
      const passed = sum(results, (one) => one.passed);
      const failed = sum(results, (one) => one.failed);
      const skipped = sum(results, (one) => one.skipped.length);
      const more = skipped > 0 ? `, ${skipped} skipped` : '';
      print(`\n${passed} passed, ${failed} failed${more}`);
      return { passed, failed, skipped };
    },
  };
}

/**
 * ok    test/core/common/ids.test.ts  4 tests  0.2 s (0.3 s of CPU), and a line for each test that
 * was skipped.
 */
function headline(result: FileResult): string {
  const { passed, failed, problems, skipped } = result;
  const tests = passed + failed === 1 ? 'test' : 'tests';
  const word = problems.length === 0 ? 'ok  ' : 'FAIL';
  const line = `${word}  ${titleOf(result)}  ${passed + failed} ${tests}  ${times(result)}`;
  const left = skipped.map(({ name, reason }) => `\n      skipped: "${name}": ${reason}`);
  return line + left.join('');
}

/** The headline, what is wrong, and the command that runs the file alone in the same way. */
function redLines(result: FileResult): string {
  const seed = SEED.exec(result.output)?.[1];
  const way = `${result.isWhole ? '--all ' : ''}${result.isSplit ? '--split ' : ''}`;
  const command = `${seed ? `${seed} ` : ''}node test/run.ts ${way}${nameOf(result.file)}`;
  return [headline(result), ...result.problems, `alone: ${command}`].join('\n      ');
}

function summary(results: readonly FileResult[], before: Use | undefined): string {
  const slowest = results.toSorted((a, b) => b.tookMs - a.tookMs).slice(0, SLOWEST_MAX);
  const folders = Object.entries(Object.groupBy(results, ({ file }) => dirname(nameOf(file))))
    .map(([folder, own = []]) => ({ folder, files: own.length, ...total(own) }))
    .sort((a, b) => b.tookMs - a.tookMs);
  return [
    '\nslowest files:',
    ...slowest.map((one) => `  ${titleOf(one)}  ${times(one)}${slowestTest(one)}`),
    '\nby folder (the sum of its files):',
    ...folders.map((one) => `  ${one.folder}  ${one.files} files  ${times(one)}`),
    `  in all  ${results.length} files  ${times(total(results))}`,
    ...machineLines(before),
  ].join('\n');
}

function machineLines(before: Use | undefined): string[] {
  const use = useSince(before);
  if (use === undefined) return [];
  const part = `${(100 * use.part).toFixed(0)} %`;
  return [`  the machine: processors ${part} in use, ${seconds(use.leastMs)} at full use`];
}

function total(results: readonly FileResult[]): Times {
  return { tookMs: sum(results, (one) => one.tookMs), cpuMs: sum(results, (one) => one.cpuMs) };
}

/** 12.3 s (4.5 s of CPU) */
function times({ tookMs, cpuMs }: Times): string {
  return `${seconds(tookMs)} (${seconds(cpuMs)} of CPU)`;
}

function slowestTest({ tests }: FileResult): string {
  const [slowest] = tests.toSorted((a, b) => b.tookMs - a.tookMs);
  return slowest === undefined ? '' : `, ${seconds(slowest.tookMs)} in "${slowest.name}"`;
}

function titleOf({ file, isSplit }: FileResult): string {
  return `${nameOf(file)}${isSplit ? ' (split)' : ''}`;
}

function nameOf(file: string): string {
  return relative(process.cwd(), file);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** 4:07, minutes and seconds. */
function clock(ms: number): string {
  const whole = Math.floor(ms / 1000);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}
