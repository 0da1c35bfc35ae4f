/**
 * JSON passed as text. In the contract, `json_text_of` marks a field that contains the JSON text of
 * another field: REST shows and reads that other field, and megabytes of a handler's result are not
 * parsed. Pure.
 */
import type { DescField, JsonValue } from '@bufbuild/protobuf';
import { invalidField } from '../../proto/rpc/errors.ts';
import type { JsonObject } from './json-validation.ts';
import type { Marks } from './messages.ts';

/** Number of the option in rest.proto. */
const JSON_TEXT_OF = 51_751;

/** The mark is the JSON name of the field whose text the marked field contains. */
export type JsonTexts = Marks<string>;

/** Whether REST hides the field. */
export function isJsonText({ proto }: DescField): boolean {
  return proto.options?.$unknown?.some(({ no }) => no === JSON_TEXT_OF) ?? false;
}

/** The answer as JSON text, with each text in place of the field it belongs to. */
export function written(answer: JsonValue, texts: JsonTexts | undefined): string {
  if (texts === undefined || typeof answer !== 'object' || answer === null) {
    return JSON.stringify(answer);
  }
  if (Array.isArray(answer)) return `[${answer.map((one) => written(one, texts)).join()}]`;
  const members = Object.entries(answer).map(([name, member]) => {
    const kind = texts.get(name);
    if (typeof kind === 'string') return `${JSON.stringify(kind)}:${member}`;
    return `${JSON.stringify(name)}:${written(member, kind)}`;
  });
  return `{${members.join()}}`;
}

/** The body, with the text of each field that core reads as text. */
export function withTexts(
  body: JsonObject,
  texts: JsonTexts | undefined,
  closed: boolean,
): JsonObject {
  const sent = { ...body };
  for (const [name, shown] of texts ?? []) {
    if (typeof shown !== 'string') continue;
    if (closed && Object.hasOwn(sent, name)) throw invalidField(name, 'is not a known field.');
    delete sent[name];
    const value = sent[shown];
    if (value === undefined) continue;
    delete sent[shown];
    sent[name] = JSON.stringify(value);
  }
  return sent;
}
