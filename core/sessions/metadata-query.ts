/**
 * Queries over session metadata: `user_metadata['key']:'value'`, nested by further brackets, for
 * equal texts. Pure. Source: proto/spec/sessions.md 3. Ours: a backslash escapes a quote or a
 * backslash within a text.
 */
import { invalidField } from '../../proto/rpc/errors.ts';

/** In characters. Ours: metadata has less than 512, and escapes may double them. */
const QUERY_MAX = 2_048;

const TEXT = String.raw`'((?:[^'\\]|\\['\\])*)'`;
const QUERY = new RegExp(String.raw`^user_metadata((?:\[${TEXT}\])+):${TEXT}$`);
const KEYS = new RegExp(String.raw`\[${TEXT}\]`, 'g');

/** Throws INVALID_FIELD naming `q`. */
export function parseQuery(q: string): { keys: string[]; value: string } {
  if (q.includes('\0')) throw invalidField('q', 'must not contain U+0000.');
  const match = q.length <= QUERY_MAX ? QUERY.exec(q) : null;
  if (!match) throw invalidField('q', "must have the form user_metadata['key']:'value'.");
  const [, brackets = '', , value = ''] = match;
  const keys = [...brackets.matchAll(KEYS)].map(([, key = '']) => plain(key));
  return { keys, value: plain(value) };
}

function plain(text: string): string {
  return text.replace(/\\(['\\])/g, '$1');
}
