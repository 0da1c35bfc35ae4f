/**
 * The guide's page "Benchmarks": its prose is written by hand, and holds generated parts. The
 * figures are those of one run of test/bench/page/bench.ts; the bounds, what the rows mean, and the
 * fault figures are written by `npm run reference`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { figuresOf, ROWS, type Row } from '../support/rows.ts';
import { faults } from './faults.ts';
import type { Machine } from './machine.ts';
import { BOUNDS } from './quiet.ts';

export const PAGE = join(import.meta.dirname, '../../../gateway/web/docs/guide/benchmarks.md');

/** One run of the program. */
export type Run = { machine: Machine; rows: readonly Row[]; rounds: number };

/** The page with the figures of that run. */
export function withFigures(page: string, run: Run): string {
  return between(page, 'npm run bench', figuresText(run));
}

/** The page with what the code says, and the figures that it has. */
export function withReference(page: string): string {
  const rows = Object.values(ROWS).map(({ title, plain, means }) => [title, means, plain]);
  const cases = faults().map(({ what, count, fails, command }) => [
    ...[what, count, fails],
    `\`${command}\``,
  ]);
  const meanings = table(['Row', 'Measured', 'The plain thing'], rows);
  const tests = table(['Fault', 'How often', 'The test fails when', 'Command'], cases);
  const parts = { bounds: boundsText(), rows: meanings, faults: tests };
  return Object.entries(parts).reduce((text, [name, part]) => between(text, name, part), page);
}

/** As on a terminal: columns of the same width. */
export function plainTable(rows: readonly Row[]): string {
  const lines = [HEADS, ...rows.map(cellsOf)];
  const widths = HEADS.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const HEADS = ['row', 'p50', 'p95', 'plain p50', 'ratio', 'spread', 'the plain thing'];

function cellsOf(row: Row): string[] {
  const { title, plain, unit } = ROWS[row.id];
  const { p50, p95, plain: theirs, ratio, spread } = figuresOf(row);
  const name = row.peer === undefined ? title : `${title} (${row.peer})`;
  const values = [p50, p95, theirs].map((value) => `${rounded(value)} ${unit}`);
  return [name, ...values, `${ratio.toFixed(2)}x`, `${(100 * spread).toFixed(0)} %`, plain];
}

function boundsText(): string {
  const percent = (part: number) => `${100 * part} %`;
  return table(
    ['What', 'Bound'],
    [
      ['average load of the minute before, by core', String(BOUNDS.load)],
      [
        'pressure (`/proc/pressure/cpu`, some) in the pauses before, between and after the parts',
        percent(BOUNDS.pressure),
      ],
      ['use of the processors in these pauses', percent(BOUNDS.busy)],
      ['use of the processors by others while a part is measured', percent(BOUNDS.others)],
      ['spread of a row', percent(BOUNDS.spread)],
      ['rounds, at least', String(BOUNDS.roundsMin)],
    ],
  );
}

function figuresText({ machine, rows, rounds }: Run): string {
  const own = rows.filter(({ peer }) => peer === undefined);
  const lines = machine.map(([name, value]) => [name, value]);
  const figures = own.map((row) => cellsOf(row).slice(0, -1));
  const heads = HEADS.slice(0, -1).map((head) => `${head[0]?.toUpperCase()}${head.slice(1)}`);
  return [
    table(['Measured with', ''], lines),
    `Medians of ${rounds} rounds:`,
    table(heads, figures),
  ].join('\n\n');
}

function rounded(value: number): string {
  return value.toFixed(value < 1 ? 3 : value < 100 ? 1 : 0);
}

/** Replaces what is between `<!-- name -->` and `<!-- /name -->`. Throws without these marks. */
function between(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no ${begin} ... ${end}`);
  return `${page.slice(0, from)}${begin}\n${text}\n${page.slice(to)}`;
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

if (import.meta.main) writeFileSync(PAGE, withReference(readFileSync(PAGE, 'utf8')));
