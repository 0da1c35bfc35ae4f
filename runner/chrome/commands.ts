/** What a client says, read as a command. Pure. */
import { OWN_IDS } from './pipe.ts';
import type { Command } from './police.ts';

/** Chrome reads no deeper; JSON.stringify would overflow the stack at a few thousand. */
const DEPTH_MAX = 300;

/** Undefined when it is none: no JSON object, no integer id of a client, no method, too deep. */
export function parseCommand(text: string): Command | undefined {
  const parsed = parseJson(text);
  if (!isObject(parsed)) return undefined;
  const { id, method, params, sessionId } = parsed;
  if (!Number.isInteger(id) || Math.abs(Number(id)) >= OWN_IDS) return undefined;
  if (typeof method !== 'string') return undefined;
  if (params !== undefined && (!isObject(params) || isDeep(text, params))) return undefined;
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

function isDeep(text: string, params: object): boolean {
  return text.length > DEPTH_MAX && isDeeperThan(DEPTH_MAX, params);
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return members.some((member) => isDeeperThan(levels - 1, member));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // said to the client as an invalid request
  }
}
