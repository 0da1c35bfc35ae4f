/**
 * Patterns of tenants: RE2's expressions, bounded before they are compiled. A repeat multiplies the
 * program that it stands for, so a short text may stand for 200,000 instructions, and a match walks
 * all of them for each character. Compile and match them in a thread; the bounds keep one turn of
 * that thread below some 20 milliseconds. Pure.
 */
import { RE2JS } from 're2js';

/** Ours, in characters: a host has 253. */
export const PATTERN_MAX_CHARS = 256;
/** Ours: so many are matched against the longest host in some 15 ms. */
const PROGRAM_MAX = 2_000;

/** What a pattern is made of, as far as repeats matter. The last one takes any character. */
const TOKENS = new RegExp(
  [
    String.raw`\\Q[^]*?(?:\\E|$)`,
    String.raw`\\[pPx]\{[^}]*\}|\\[^]`,
    String.raw`\[\^?\]?(?:\[:\^?\w+:\]|\\[^]|[^\]\\])*\]`,
    String.raw`\{\d+(?:,\d*)?\}`,
    '[^]',
  ].join('|'),
  'gu',
);

/** What keeps a pattern from being compiled, as the end of a sentence. */
export function patternProblem(text: string): string | undefined {
  if (text.length > PATTERN_MAX_CHARS) return `must be at most ${PATTERN_MAX_CHARS} characters.`;
  if (programSize(text) <= PROGRAM_MAX) return undefined;
  return `must stand for at most ${PROGRAM_MAX} instructions; its repeat counts multiply.`;
}

/** Throws a sentence for the tenant. */
export function patternOf(text: string): RE2JS {
  if (patternProblem(text) !== undefined) throw new TypeError('is too large');
  try {
    return RE2JS.compile(text, RE2JS.CASE_INSENSITIVE);
  } catch (cause) {
    throw new TypeError('is not a regular expression of RE2', { cause });
  }
}

/**
 * An estimate from the text alone: what each group and character stands for, times the counts of
 * the repeats around it. A text that RE2 refuses has one, too.
 */
function programSize(text: string): number {
  const outer: number[] = [];
  let size = 0;
  let last = 0; // what a repeat that follows repeats
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '(') {
      outer.push(size + 2);
      [size, last] = [0, 0];
    } else if (token === ')') {
      last = size + 2;
      size += outer.pop() ?? 2;
    } else if (/^\{\d/.test(token)) {
      const counts = token.match(/\d+/g) ?? [];
      const each = counts.length > 1 ? last + 1 : last;
      const more = each * Math.max(1, ...counts.map(Number));
      size += more;
      last += more;
    } else if (/^[*+?]$/.test(token)) {
      [size, last] = [size + 1, last + 1];
    } else {
      last = token.startsWith('\\Q') ? token.length : 1;
      size += last;
    }
  }
  return outer.reduce((sum, one) => sum + one, size);
}
