/** On what a run was measured. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium';
const GIB = 1 << 30;

/** Its lines: what, and which. */
export type Machine = readonly (readonly [name: string, value: string])[];

export function thisMachine(): Machine {
  const memory = `${(totalmem() / GIB).toFixed(0)} GiB of memory`;
  const [chromium = ''] = /[\d.]{5,}/.exec(said(CHROME, '--version')) ?? [];
  return [
    ['Machine', `${availableParallelism()} cores of ${cpus()[0]?.model.trim()}, ${memory}`],
    ['Kernel', `Linux ${release()}`],
    ['tabern', `${packaged('../../../package.json')}, commit ${commit()}`],
    ['Node', process.versions.node],
    ['Chromium', chromium],
    ['playwright-core', packaged('playwright-core/package.json')],
    ['puppeteer-core', packaged('puppeteer-core/package.json')],
  ];
}

/** The page itself is a change that a run makes. */
function commit(): string {
  const others = [':!gateway/web/docs/guide/benchmarks.md'];
  const changes = said('git', 'status', '--porcelain', '--', '.', ...others);
  return `${said('git', 'rev-parse', '--short=12', 'HEAD')}${changes === '' ? '' : ' and changes'}`;
}

function packaged(path: string): string {
  const file = createRequire(import.meta.url).resolve(path);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function said(program: string, ...words: string[]): string {
  return execFileSync(program, words, { cwd: ROOT, encoding: 'utf8' }).trim();
}
