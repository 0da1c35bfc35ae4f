/**
 * The secrets of a run, and a mask for their values in texts that leave the sandbox: log lines and
 * errors. A text is searched for each value, each of its lines (they are printed one by one), and
 * both as JSON and as util.inspect write them. Values and lines below four characters are not
 * masked: they would mask parts of common words. The search passes over a text once, whatever the
 * number of values. It protects from accidents: a handler can print a value in another form.
 */
import { inspect } from 'node:util';
import { cutToBytes } from './text.ts';

const MASK = '***';
/** In characters. Ours. */
const PART_MIN = 4;
/** Bits of the filter that tells most positions from the beginning of a pattern. */
const FILTER_BITS = 16;

export type Mask = {
  /** The text without values, then cut to that many bytes of UTF-8. */
  cut(text: string, maxBytes: number): string;
  /** In characters: a cut before the search keeps that many more. */
  reach: number;
};

export type Secrets = Readonly<Record<string, string>>;

/** By name. Without a prototype: no name but those of secrets has a value. */
export function readSecrets(json: string): Secrets {
  return Object.assign(Object.create(null), JSON.parse(json));
}

export function openMask(secrets: Secrets): Mask {
  const patterns = [...new Set(Object.values(secrets).flatMap(patternsOf))];
  if (patterns.length === 0) return { cut: cutToBytes, reach: 0 };
  const starts = indexed(patterns);
  const reach = patterns.reduce((most, { length }) => Math.max(most, length), 0);
  return {
    reach,
    // a value that begins before the cut is whole in the part that is searched
    cut(text, maxBytes) {
      const searched = text.slice(0, maxBytes + reach);
      return cutToBytes(masked(searched, starts, maxBytes), maxBytes);
    },
  };
}

/** Whether a value, or a line of it, is long enough. */
export function isMasked(text: string): boolean {
  return text.length >= PART_MIN;
}

/** The texts that stand for a value. */
function patternsOf(value: string): string[] {
  const lines = value.split(/\r\n|\n|\r/).map((line) => line.trim());
  return [value, ...lines].filter(isMasked).flatMap(formsOf);
}

function formsOf(text: string): string[] {
  const quoted = [JSON.stringify(text), inspect(text, { breakLength: Number.POSITIVE_INFINITY })];
  return [text, ...quoted.map((one) => one.slice(1, -1))];
}

type Starts = { filter: Uint8Array; byKey: ReadonlyMap<number, readonly string[]> };

/** Patterns by their first four characters, the longest first. */
function indexed(patterns: readonly string[]): Starts {
  const filter = new Uint8Array(1 << FILTER_BITS);
  const byKey = new Map<number, string[]>();
  for (const pattern of patterns.toSorted((one, other) => other.length - one.length)) {
    let key = 0;
    for (let at = 0; at < PART_MIN; at += 1) key = nextKey(key, pattern.charCodeAt(at));
    filter[placeOf(key)] = 1;
    const found = byKey.get(key);
    if (found) found.push(pattern);
    else byKey.set(key, [pattern]);
  }
  return { filter, byKey };
}

/** Of the last four characters: an earlier one was shifted out of the 32 bits. */
function nextKey(key: number, code: number): number {
  return (key << 8) ^ code;
}

function placeOf(key: number): number {
  return (key ^ (key >>> FILTER_BITS)) & ((1 << FILTER_BITS) - 1);
}

/** Compares memory: startsWith takes a hundred times as long (seen with 64 KiB of one letter). */
function isAt(text: string, start: number, pattern: string): boolean {
  return text.slice(start, start + pattern.length) === pattern;
}

/** The first `length` characters; values that overlap, or follow one another, become one mask. */
function masked(text: string, { filter, byKey }: Starts, length: number): string {
  const parts: string[] = [];
  let [key, kept, end] = [0, 0, -1];
  for (let at = 0; at < text.length && at < length + PART_MIN - 1; at += 1) {
    key = nextKey(key, text.charCodeAt(at));
    if (at < PART_MIN - 1 || filter[placeOf(key)] === 0) continue;
    const start = at - PART_MIN + 1;
    // what ends within the last mask is masked already
    const found = byKey.get(key)?.find((one) => start + one.length > end && isAt(text, start, one));
    if (found === undefined) continue;
    if (start > end) parts.push(text.slice(kept, start), MASK);
    end = Math.max(end, start + found.length);
    kept = end;
  }
  return parts.join('') + text.slice(kept, Math.max(kept, length));
}
