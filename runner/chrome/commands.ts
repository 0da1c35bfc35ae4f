/** What a client says, read as a command. Pure. */
import { OWN_IDS } from './pipe.ts';
import type { Command } from './police.ts';

/** Undefined when it is none: no JSON object, no integer id of a client, no method. */
export function parseCommand(text: string): Command | undefined {
  const parsed = parseJson(text);
  if (!isObject(parsed)) return undefined;
  const { id, method, params, sessionId } = parsed;
  if (!Number.isInteger(id) || Math.abs(Number(id)) >= OWN_IDS) return undefined;
  if (typeof method !== 'string') return undefined;
  if (params !== undefined && !isObject(params)) return undefined;
  if (sessionId !== undefined && typeof sessionId !== 'string') return undefined;
  return {
    id: id as number,
    method,
    ...(params === undefined ? {} : { params }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // said to the client as an invalid request
  }
}
