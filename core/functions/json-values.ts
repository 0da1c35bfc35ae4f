/**
 * Tenants' JSON in answers. A google.protobuf.Value costs about 100 times the CPU time of its text.
 * Callers that accept text (proto/json/json-text.ts) receive text; other callers receive values up
 * to a limit per answer, and text beyond it.
 */
import { takesJsonText } from '../../proto/json/json-text.ts';
import type { Call } from '../../proto/rpc/local.ts';

/** Ours, in characters of JSON, of all values of one answer: about 50 ms of CPU time. */
const VALUES_MAX = 256 << 10;

/** Converts the JSON texts of one answer. At most one member is set; none for null. */
// biome-ignore lint/suspicious/noExplicitAny: as ts-proto types a Struct.
export type ShowJson = (json: string | null) => { value: any; text: string | undefined };

export function jsonOf({ metadata }: Pick<Call, 'metadata'>): ShowJson {
  let left = takesJsonText(metadata) ? 0 : VALUES_MAX;
  return (json) => {
    if (json === null || json === 'null') return { value: undefined, text: undefined };
    if (json.length > left) return { value: undefined, text: json };
    left -= json.length;
    return { value: JSON.parse(json), text: undefined };
  };
}
