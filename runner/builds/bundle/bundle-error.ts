/** What a bundler's messages become for the author of the project. Pure. */
import { isAbsolute, sep } from 'node:path';

/** Enough to see what is wrong; the rest is usually its consequence. */
const ERRORS_SHOWN_MAX = 10;

/** Of esbuild. */
type Message = {
  text: string;
  location: { file: string; line: number; column: number; length: number; lineText: string } | null;
};
/** Where a sandbox forbids to look at the directories above the project. */
const FORBIDDEN = /^Cannot read directory "(?:\.\.\/)*\.\.(?:\/[^"]*)?": permission denied$/;

/** What the author of the project can mend; each line of the message reads `file:line: message`. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
}

/**
 * What esbuild says, without a path of this machine and without a word of a file that is not the
 * project's.
 */
export function lines(all: Message[], root: string): string[] {
  const messages = all.flatMap(readable);
  if (messages.length === 0 && all.length > 0) return ['the import leads outside the project'];
  const said = messages.slice(0, ERRORS_SHOWN_MAX).map(({ text, location }) => {
    const inside = text.replaceAll(root + sep, '').replaceAll(root, '.');
    if (!location || location.file === 'entry') return inside;
    const { file, line } = location;
    if (isAbsolute(file) || file.startsWith('..')) return 'a file outside the project was refused';
    return `${file}:${line}: ${inside}`;
  });
  const more = messages.length - said.length;
  return more > 0 ? [...said, `and ${more} more`] : said;
}

/**
 * What is forbidden is said as what is not there: the import that led to it, or nothing where none
 * did, since its own error follows.
 */
function readable({ text, location }: Message): Message[] {
  if (!FORBIDDEN.test(text)) return [{ text, location }];
  if (location === null) return [];
  const { column, length, lineText } = location;
  const named = Buffer.from(lineText)
    .subarray(column, column + length)
    .toString('utf8');
  const name = named.replace(/^(['"`])(.*)\1$/, '$2');
  return [{ text: `Could not resolve ${JSON.stringify(name)}`, location }];
}
