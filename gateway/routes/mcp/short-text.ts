/**
 * Short answers: a model pays for each character, and a client refuses answers over its own limit.
 * Pure.
 */

/** In characters, of the variable part of an answer: some 5,000 tokens. Ours. */
export const TEXT_MAX_CHARS = 20_000;

type Part = {
  /** Characters before the part. */
  offset?: number;
  /** How to read what is not in the part, as a sentence. */
  rest(next: number): string;
};

/** A part of the text from `offset` on, with a note of what is missing. */
export function firstPart(whole: string, { offset = 0, rest }: Part): string {
  const end = boundary(whole, offset + TEXT_MAX_CHARS);
  const part = whole.slice(boundary(whole, offset), end);
  if (offset === 0 && end >= whole.length) return part;
  if (offset >= whole.length && offset > 0) return `[The text has ${whole.length} characters.]`;
  const range = `characters ${offset} to ${end} of ${whole.length}`;
  const note = end >= whole.length ? `${range}: the end` : `${range}. ${rest(end)}`;
  return `${part}\n\n[${note}]`;
}

/** The end of the text, with a note of what is missing. */
export function lastPart(whole: string, rest: string): string {
  if (whole.length <= TEXT_MAX_CHARS) return whole;
  const from = boundary(whole, whole.length - TEXT_MAX_CHARS);
  const range = `The last ${whole.length - from} of ${whole.length} characters`;
  return `[${range}. ${rest}]\n${whole.slice(from)}`;
}

/** One line of at most `max` characters. */
export function line(words: string, max: number): string {
  const plain = words.replace(/\s+/g, ' ').trim();
  return plain.length <= max ? plain : `${plain.slice(0, boundary(plain, max))}…`;
}

/** Not between the halves of a character. */
function boundary(whole: string, at: number): number {
  const code = whole.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : Math.min(at, whole.length);
}
