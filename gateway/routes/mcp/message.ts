/**
 * Reads one message of MCP (JSON-RPC 2.0) before the SDK does. The arguments of a tool are taken
 * out: REST checks them. Of the rest, the SDK validates each value against unions of schemas, on
 * the main thread: 1 MiB of small values took 2 to 9 s, so their number is limited. Pure.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Json } from '../../http/body.ts';
import type { JsonObject } from '../../rest/json-validation.ts';

/** Ours: messages of known clients have less than 60. */
const VALUES_MAX = 200;

export type Message = {
  /** For the SDK. */
  envelope: JsonObject;
  /** Arguments of a tool; not an object when the client sent something else. */
  given: Json | undefined;
};

/** Throws INVALID_FIELD for anything but one object of a limited size. */
export function readMessage(body: Json): Message {
  if (!isObject(body)) {
    const problem = 'Body must be one JSON-RPC message; several in an array are not supported.';
    throw new Fault('INVALID_FIELD', problem);
  }
  const { params } = body;
  if (!isObject(params)) return { envelope: limited(body), given: undefined };
  const { arguments: given, ...rest } = params;
  return { envelope: limited({ ...body, params: rest }), given };
}

function limited(envelope: JsonObject): JsonObject {
  if (valuesIn(envelope) <= VALUES_MAX) return envelope;
  const problem = `The message must have at most ${VALUES_MAX} values besides params.arguments.`;
  throw new Fault('INVALID_FIELD', problem);
}

/** Its depth is limited by http/body.ts. */
function valuesIn(value: Json): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 1);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
