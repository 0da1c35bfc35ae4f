/**
 * Runs one test file in a process group of its own, with a time limit, and checks its report. Used
 * by test/run.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { signalGroup } from '../service/processes.ts';
import { memoryDirectory, removeTemporaryFiles, temporaryFiles } from './memory.ts';
import { type Report, STOP } from './uvu.ts';

const STRICT = fileURLToPath(new URL('./strict.ts', import.meta.url));
/**
 * The cache of compiled sources, of the tests, of the product in their threads and of the services
 * that they start. Without it, compiling takes a quarter of the suite's CPU time. Node names
 * entries by content and version.
 */
const COMPILE_CACHE = fileURLToPath(
  new URL('../../../node_modules/.cache/test-modules', import.meta.url),
);
/**
 * A test may leave a process that holds its output open; it gets this long to die with the group.
 * Ours.
 */
const DRAIN_MS = 2_000;
/** A file that is stopped at its limit gets this long to report its tests. Ours. */
const REPORT_MS = 5_000;
/** Of what one file prints; the rest is cut, so that an endless loop cannot fill memory. Ours. */
const OUTPUT_MAX_BYTES = 4 << 20;

/** How a file is run. */
export type FileRun = {
  limitMs: number;
  /** At the size of `--all`. */
  isWhole: boolean;
  /** Its services have their roles apart. */
  isSplit: boolean;
  /** Its temporary files are not in memory. */
  isOnDisk: boolean;
};

/** `problems` is empty when the file is green; `output` is all that it printed. */
export type FileResult = {
  file: string;
  isWhole: boolean;
  isSplit: boolean;
  /** It is larger in a whole run. */
  isSized: boolean;
  passed: number;
  failed: number;
  problems: string[];
  output: string;
  tookMs: number;
  /** Of the file's processes; 0 when it left no report. */
  cpuMs: number;
  tests: Report['tests'];
  skipped: Report['skipped'];
};

const groups = new Set<number>();

/** Ends all running files: called when the runner is stopped. */
export function killAll(): void {
  for (const group of groups) signalGroup(group, 'SIGKILL');
  removeTemporaryFiles();
}

/**
 * Runs the file; green only when it left a report in which every test passed, and exited 0 in time.
 */
export async function runFile(file: string, run: FileRun): Promise<FileResult> {
  const startedAt = performance.now();
  const temporary = temporaryFiles(run.isOnDisk ? tmpdir() : memoryDirectory());
  const own = { NODE_COMPILE_CACHE: COMPILE_CACHE, TMPDIR: temporary.path };
  const child = spawn(process.execPath, [STRICT, file], {
    env: { ...process.env, ...own, ...wayEnv(run) },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const output = collect(child, [1, 2]);
  const reported = collect(child, [3]);
  const end = await ended(child, run.limitMs);
  await temporary.remove();
  const report = parse(reported());
  const problems = [...(report?.problems ?? []), ...end];
  if (report === undefined) problems.push('ended without a report of its tests');
  else if (report.passed + report.failed + report.skipped.length === 0) {
    problems.push('no test ran');
  }
  if (report && report.failed > 0) problems.push(`${report.failed} failed`);
  const failed = Math.max(report?.failed ?? 0, problems.length > 0 ? 1 : 0);
  const tookMs = performance.now() - startedAt;
  return {
    file,
    isWhole: run.isWhole,
    isSplit: run.isSplit,
    isSized: report?.isSized ?? false,
    passed: report?.passed ?? 0,
    failed,
    problems,
    output: output(),
    tookMs,
    cpuMs: report?.cpuMs ?? 0,
    tests: report?.tests ?? [],
    skipped: report?.skipped ?? [],
  };
}

/** Read by test/support/whole.ts and test/support/service/serve.ts. */
function wayEnv({ isWhole, isSplit }: FileRun): NodeJS.ProcessEnv {
  return {
    TABERN_TEST_ALL: isWhole ? '1' : undefined,
    TABERN_TEST_TOPOLOGY: isSplit ? 'split' : undefined,
  };
}

/**
 * Waits for the process until its limit, at which strict.ts reports which test did not end and
 * what is still open; then kills the rest of its group.
 */
async function ended(child: ChildProcess, limitMs: number): Promise<string[]> {
  const group = child.pid;
  if (group === undefined) return ['could not be started'];
  groups.add(group);
  const closed = once(child, 'close');
  const problems: string[] = [];
  const timer = setTimeout(() => {
    problems.push(`still running after ${limitMs / 1000} s: killed`);
    child.kill(STOP);
    setTimeout(() => signalGroup(group, 'SIGKILL'), REPORT_MS).unref();
  }, limitMs);
  const [code, signal] = await once(child, 'exit');
  clearTimeout(timer);
  signalGroup(group, 'SIGKILL');
  groups.delete(group);
  const drained = new AbortController();
  await Promise.race([closed, sleep(DRAIN_MS, undefined, drained)]);
  drained.abort();
  for (const stream of child.stdio) stream?.destroy();
  if (problems.length === 0 && code !== 0) problems.push(`exit ${signal ?? code}`);
  return problems;
}

function collect(child: ChildProcess, descriptors: number[]): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for (const descriptor of descriptors) {
    child.stdio[descriptor]?.on('data', (chunk: Buffer) => {
      if (bytes < OUTPUT_MAX_BYTES) chunks.push(chunk);
      bytes += chunk.length;
    });
  }
  return () => Buffer.concat(chunks).toString() + (bytes > OUTPUT_MAX_BYTES ? '\n[cut]\n' : '');
}

/** The report, unless the process died before or while it wrote it. */
function parse(text: string): Report | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller fails the file for it
  }
}
