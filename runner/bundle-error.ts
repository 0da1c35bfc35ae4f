/** What a bundler's messages become for the author of the project. Pure. */
import { isAbsolute, sep } from 'node:path';

/** Enough to see what is wrong; the rest is usually its consequence. */
const ERRORS_SHOWN_MAX = 10;

/** Of esbuild. */
type Message = { text: string; location: { file: string; line: number } | null };

/** What the author of the project can mend; each line of the message reads `file:line: message`. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
}

/**
 * What esbuild says, without a path of this machine and without a word of a file that is not the
 * project's.
 */
export function lines(messages: Message[], root: string): string[] {
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
