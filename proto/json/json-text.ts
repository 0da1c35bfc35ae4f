/**
 * The list of calls whose responses contain tenants' JSON as text, in fields with the proto option
 * `json_text_of`. The gateway sends that text without parsing it.
 */

const METADATA_KEY = 'x-tabern-json';

/** Metadata of a caller that accepts text. */
export const TAKES_JSON_TEXT: Readonly<Record<string, string>> = { [METADATA_KEY]: 'text' };

export function takesJsonText(metadata: Readonly<Record<string, string>>): boolean {
  return metadata[METADATA_KEY] === 'text';
}
