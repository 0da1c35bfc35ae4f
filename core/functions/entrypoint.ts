/**
 * The entry file of a build, as typed by a person: normalised, and never outside the archive. Pure.
 */
import { posix } from 'node:path';
import { invalidField } from '../../proto/rpc/errors.ts';

/** Source: reference.md 3.4. */
const EXTENSIONS = ['.ts', '.js', '.mjs', '.mts'];
/** In characters. Ours: longer than any path that tar holds without extensions. */
const LENGTH_MAX = 512;

export function normalisedEntrypoint(typed: string): string {
  const refuse = (problem: string) => invalidField('entrypoint', problem);
  if (typed === '' || typed.length > LENGTH_MAX)
    throw refuse(`must be 1 to ${LENGTH_MAX} characters.`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\x00-\x1f\x7f]/.test(typed)) throw refuse('must not contain control characters.');
  const path = typed.replaceAll('\\', '/');
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) {
    throw refuse('must be relative to the root of the archive.');
  }
  if (path.split('/').includes('..')) throw refuse('must not contain "..".');
  if (!EXTENSIONS.includes(posix.extname(path))) {
    throw refuse(`must end in ${EXTENSIONS.join(', ')}.`);
  }
  return posix.normalize(path);
}
