/**
 * Names that are unique within a project: of contexts and of labels. Names that differ in case or
 * in the form of Unicode only are the same name. Pure. Source: proto/spec/contexts.md 2.
 */
import { invalidField } from '../../proto/rpc/errors.ts';
import { inRange, storable } from './checks.ts';

/** After trimming. */
const NAME_LENGTH = { min: 1, max: 128, unit: ' characters' };
const WHITE_SPACE = /^[\p{White_Space}\uFEFF]$/u;

/** The name as stored. Throws INVALID_FIELD. */
export function checkedName(field: string, text: string): string {
  const characters = trimmed(text);
  inRange(field, characters.length, NAME_LENGTH);
  const name = characters.join('');
  if (!name.isWellFormed()) throw invalidField(field, 'must be well-formed Unicode.');
  return storable(field, name);
}

/**
 * The characters without surrounding white space of Unicode: `trim()` omits U+0085. Character by
 * character: a pattern would be quadratic.
 */
function trimmed(text: string): string[] {
  const characters = [...text];
  const isVisible = (character: string) => !WHITE_SPACE.test(character);
  return characters.slice(characters.findIndex(isVisible), characters.findLastIndex(isVisible) + 1);
}

/**
 * Names with one key are the same name. Folded character by character, by way of upper case: lower
 * case alone keeps σ from ς and ß from SS. Only the dotless ı has another letter's upper case.
 * Folding may leave what NFC composes, so it is composed again.
 */
export function nameKey(name: string): string {
  const folded = Array.from(name.normalize('NFC'), (char) =>
    char === 'ı' ? char : char.toLowerCase().toUpperCase().toLowerCase(),
  );
  return folded.join('').normalize('NFC');
}
