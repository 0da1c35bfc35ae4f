/**
 * Untrusted patterns: RE2 expressions, limited before they are compiled. A repeat multiplies its
 * operand, so a short text may compile to 200,000 instructions, and a match visits all of them for
 * each character. Compile and match them in a thread; the limits keep one operation below about 20
 * milliseconds. Pure.
 */
import { RE2JS } from 're2js';

/** Ours, in characters: a host name has 253. */
export const PATTERN_MAX_CHARS = 256;
/** Ours: this many take about 15 ms against the longest host name. */
const PROGRAM_MAX = 2_000;

/** Tokens of a pattern that matter for repeats. The last alternative matches any character. */
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

/** Why a pattern may not be compiled, as the end of a sentence. */
export function patternProblem(text: string): string | undefined {
  if (text.length > PATTERN_MAX_CHARS) return `must be at most ${PATTERN_MAX_CHARS} characters.`;
  if (programSize(text) <= PROGRAM_MAX) return undefined;
  return `must stand for at most ${PROGRAM_MAX} instructions; its repeat counts multiply.`;
}

/** Throws a sentence for the user. */
export function patternOf(text: string): RE2JS {
  if (patternProblem(text) !== undefined) throw new TypeError('is too large');
  try {
    return RE2JS.compile(text, RE2JS.CASE_INSENSITIVE);
  } catch (cause) {
    throw new TypeError('is not a regular expression of RE2', { cause });
  }
}

/**
 * Estimates the program size from the text: the sizes of groups and characters times the counts of
 * the enclosing repeats. Also defined for texts that RE2 refuses.
 */
function programSize(text: string): number {
  const outer: number[] = [];
  let size = 0;
  let last = 0; // the operand of a following repeat
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
