/**
 * Calls whose answers hold JSON of tenants as text, in the fields marked `json_text_of`: the
 * gateway passes that text on and makes no value of it.
 */

const METADATA_KEY = 'x-tabern-json';

/** The metadata of a caller that takes text. */
export const TAKES_JSON_TEXT: Readonly<Record<string, string>> = { [METADATA_KEY]: 'text' };

export function takesJsonText(metadata: Readonly<Record<string, string>>): boolean {
  return metadata[METADATA_KEY] === 'text';
}
