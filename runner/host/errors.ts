/**
 * Converts a handler's results and errors to text. They are a tenant's objects: getters may throw
 * or return other values each time, and texts may be huge.
 */
import { dirname } from 'node:path';
import { inspect, types } from 'node:util';
import { ERROR_TEXT_MAX_BYTES, type ErrorText } from './messages.ts';
import type { Mask } from './secrets.ts';

/** In bytes of JSON. Source: proto/spec/functions.md 5. */
export const RESULT_MAX_BYTES = 6 * 1024 * 1024;
/** Captured before a tenant's code can replace it. */
const toJson = JSON.stringify;
/** Stack frames of ours or of the runtime, which are of no use to a user. */
const OWN_FRAME =
  /[/\\](?:runner[/\\]host|piscina[/\\](?:src|dist))[/\\]|\(?(?:node:internal\/|ext:)/;
/** Node's name for module level, which Deno omits. */
const NAMELESS = /^(\s+at )<anonymous> \((.*)\)$/;

/** JSON of a handler's value; undefined for none. Throws an Error that says what to do. */
export function stringify(value: unknown): string | undefined {
  let json: string | undefined;
  try {
    json = toJson(value);
  } catch (cause) {
    const why = textOf(() => (cause as Error).message).split('\n')[0];
    throw new Error(`the handler's result cannot be written as JSON: ${why}`, { cause });
  }
  const bytes = json === undefined ? 0 : Buffer.byteLength(json);
  if (bytes <= RESULT_MAX_BYTES) return json;
  throw new Error(
    `the handler's result has ${bytes} bytes of JSON; ` +
      `the limit is ${RESULT_MAX_BYTES} (6 MiB). Return less`,
  );
}

/**
 * Describes anything thrown: an Error, a text, null, an object that throws when it is read. `file`
 * is the bundle: source paths are relative to its directory, as the user knows them. Values of
 * secrets are masked.
 */
export function explain(thrown: unknown, file: string, mask: Mask): ErrorText {
  const cut = (text: string): string => mask.cut(text, ERROR_TEXT_MAX_BYTES);
  if (!types.isNativeError(thrown) && !(thrown instanceof Error)) {
    const shown = typeof thrown === 'string' ? thrown : textOf(() => inspect(thrown, { depth: 2 }));
    return { name: '', message: cut(`the handler threw ${shown}`), stack: '' };
  }
  return {
    name: cut(textOf(() => thrown.name)),
    message: cut(textOf(() => thrown.message)),
    stack: cut(ownFramesOff(cut(textOf(() => thrown.stack)), dirname(file))),
  };
}

/** The stack without our frames and without the directory of the bundle. */
function ownFramesOff(stack: string, dir: string): string {
  const lines = stack.split('\n').filter((line) => !/^\s+at /.test(line) || !OWN_FRAME.test(line));
  const shown = lines.map((line) => line.replace(NAMELESS, '$1$2'));
  return shown.join('\n').replaceAll(`file://${dir}/`, '').replaceAll(`${dir}/`, '');
}

function textOf(read: () => unknown): string {
  try {
    const value = read();
    return typeof value === 'string' ? value : '';
  } catch {
    return ''; // a getter of the tenant's threw: there is no text to show
  }
}
