/**
 * Runs one test file for test/run.ts: `node strict.ts <file>`. Gives the file a uvu that counts,
 * and on exit writes the outcome of every registered test to descriptor 3. uvu's own summary is not
 * trusted: a suite that is never run, a test that throws null and a hook that throws are all green
 * in it (uvu issues 60, 80, 191, 205).
 */
import { readFileSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { familyOf, orphans, type Process } from '../service/processes.ts';

const REPORT_FD = 3;
/** Of the times in /proc, on every machine that Node runs on. */
const TICK_MS = 10;
/** Ours: enough for the program and for Chrome's `--type`. */
const COMMAND_MAX_CHARS = 200;
const counting = new URL('./uvu.ts', import.meta.url).href;
const sizes = new URL('../whole.ts', import.meta.url).href;
/** Whether the file is larger in a whole run. */
let isSized = false;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'uvu' || context.parentURL === counting) {
      const found = next(specifier, context);
      isSized ||= found.url === sizes;
      return found;
    }
    return { url: counting, format: 'module-typescript', shortCircuit: true };
  },
});

const { report, STOP } = await import(counting);
process.on(STOP, () => {
  console.error(`open at the time limit:\n${stillOpen().join('\n')}`);
  process.exit(1);
});
process.on('exit', () => {
  writeSync(REPORT_FD, JSON.stringify({ ...report(), isSized, cpuMs: cpuMs() }));
});
await import(pathToFileURL(resolve(process.argv[2] ?? '')).href);

/**
 * What may keep this process running: its open resources, its descendants, and orphans, which may
 * be of another file.
 */
function stillOpen(): string[] {
  const [, ...children] = familyOf(process.pid);
  const lines = (kind: string, found: readonly Process[]) =>
    found.map(({ pid, command }) => `${kind} ${pid}: ${command.slice(0, COMMAND_MAX_CHARS)}`);
  return [
    process.getActiveResourcesInfo().join(', '),
    ...lines('child', children),
    ...lines('orphan', orphans()),
  ];
}

/**
 * The CPU time of this process and of its descendants, those apart whose parent did not wait for
 * their end. proc(5), fields 14 to 17 of stat.
 */
function cpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) * TICK_MS;
}
