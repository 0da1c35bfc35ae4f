/** Ids in paths. */
import { invalidField } from '../../proto/rpc/errors.ts';
import { isId } from './ids.ts';

/**
 * The id in its stored spelling; what is no UUID is malformed, not missing. Source: errors.md, rule
 * 7.
 */
export function pathId(field: string, text: string): string {
  if (!isId(text)) throw invalidField(field, 'must be a UUID.');
  return text.toLowerCase();
}
