/**
 * Runs one test file for test/run.ts: `node strict.ts <file>`. Gives the file a uvu that counts,
 * and on exit writes to descriptor 3 what became of every test that was registered. uvu's own
 * summary is not trusted: a suite that is never run, a test that throws null and a hook that throws
 * are all green in it (uvu issues 60, 80, 191, 205).
 */
import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const REPORT_FD = 3;
const counting = new URL('./uvu.ts', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'uvu' || context.parentURL === counting) return next(specifier, context);
    return { url: counting, format: 'module-typescript', shortCircuit: true };
  },
});

const { report } = await import(counting);
process.on('exit', () => writeSync(REPORT_FD, JSON.stringify(report())));
await import(pathToFileURL(resolve(process.argv[2] ?? '')).href);
