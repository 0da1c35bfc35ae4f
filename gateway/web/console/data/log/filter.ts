/**
 * The filter of a log list: words that must all occur, in any case. `status:5xx`, `status:404`,
 * `method:POST`, `type:document`, `level:error`, `domain:network`, `page:0`, `is:failed` and
 * `is:slow` compare one field; `-` in front excludes. A range of time limits the rows. Pure.
 */
import type { Range } from './fold.ts';
import { SLOW_MS } from './lanes.ts';
import type { LogRow } from './model.ts';
import { domainOf } from './moments.ts';

const WORDS_MAX = 16;

/** Indexes of the rows that match, in their order. */
export function matching(rows: readonly LogRow[], text: string, range?: Range): number[] {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX).map(testOf);
  if (range) tests.push(({ at }) => at >= range.from && at <= range.to);
  const found: number[] = [];
  rows.forEach((row, index) => {
    if (tests.every((test) => test(row))) found.push(index);
  });
  return found;
}

function testOf(word: string): (row: LogRow) => boolean {
  if (word.startsWith('-') && word.length > 1) {
    const test = testOf(word.slice(1));
    return (row) => !test(row);
  }
  const [, field = '', value = ''] = /^(\w+):(.+)$/.exec(word) ?? [];
  return fieldTest(field, value) ?? ((row) => rowText(row).includes(word));
}

function fieldTest(field: string, value: string): ((row: LogRow) => boolean) | undefined {
  switch (field) {
    case 'status':
      return ({ code }) => matchesCode(code, value);
    case 'method':
    case 'level':
      return ({ name }) => name.toLowerCase() === value;
    case 'type':
      return ({ kind }) => kind.toLowerCase() === value;
    case 'domain':
      return ({ name }) => domainOf(name).toLowerCase() === value;
    case 'page':
      return ({ page }) => String(page) === value;
    case 'is':
      if (value === 'slow') return ({ lengthMs = 0 }) => lengthMs > SLOW_MS;
      return ({ state }) => state === value;
    default:
      return undefined; // `https://…` is a word
  }
}

/** `5xx` is a class of codes. */
function matchesCode(code: number | undefined, value: string): boolean {
  if (code === undefined) return false;
  return /^[1-5]xx$/.test(value)
    ? Math.floor(code / 100) === Number(value[0])
    : `${code}` === value;
}

function rowText({ name, text, kind, code, note }: LogRow): string {
  return `${name} ${text} ${kind} ${code ?? ''} ${note ?? ''}`.toLowerCase();
}
