/**
 * Reads a JSON body, with limits on bytes, time and depth; refuses values that JSON does not
 * round-trip. An empty body is `{}` for any content type, because published clients send
 * `application/json` with length 0 (proto/spec/rest.md 3).
 */
import type { IncomingMessage } from 'node:http';
import { Fault } from '../../proto/rpc/errors.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import { BODIES_MAX_BYTES, BODY_MAX_BYTES, JSON_DEPTH_MAX, REQUEST_TIMEOUT_MS } from '../config.ts';
import { openTurns } from './turns.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const JSON_TYPE = /^application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** Memory for bodies that are being received, and for those that wait for their turn. */
const arriving = openShares(BODIES_MAX_BYTES);
const turnOf = openTurns();

type Reading = {
  /** The project whose share of the memory the body uses; undefined for small bodies. */
  projectId?: string | undefined;
  maxBytes?: number;
  timeoutMs?: number;
};

/**
 * The body as JSON. Throws BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, MALFORMED_JSON, REQUEST_TIMEOUT,
 * or CONCURRENCY_LIMIT when the project's share of the memory is in use.
 */
export async function readJson(request: IncomingMessage, reading: Reading = {}): Promise<Json> {
  if (hasBody(request) && !isJson(request)) {
    throw new Fault('UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be application/json.');
  }
  const bytes = await readBytes(request, reading);
  if (bytes.length === 0) return {};
  if (!isJson(request)) {
    throw new Fault('UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be application/json.');
  }
  return parseJson(bytes);
}

/** Parses bytes of JSON text. Throws MALFORMED_JSON. */
export function parseJson(bytes: Uint8Array): Json {
  let value: Json;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw malformed('Body is not valid JSON.', cause);
  }
  checkTree(value, 1);
  return value;
}

/** Refuses a body whose declared size is too large before other checks (proto/spec/errors.md 5). */
export function checkDeclaredSize(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** The Fault for a body over its limit. */
export function tooLarge(maxBytes: number): Fault {
  const kibibytes = Math.floor(maxBytes / 1024);
  const limit = kibibytes < 1024 ? `${kibibytes} KiB` : `${Math.floor(kibibytes / 1024)} MiB`;
  return new Fault('BODY_TOO_LARGE', `The body must not exceed ${limit}.`, {
    limitBytes: maxBytes,
  });
}

async function readBytes(
  request: IncomingMessage,
  { projectId, maxBytes = BODY_MAX_BYTES, timeoutMs = REQUEST_TIMEOUT_MS }: Reading,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => {
    reject(new Fault('REQUEST_TIMEOUT', 'The body took too long to arrive.'));
  }, timeoutMs);
  request.on('data', (chunk: Buffer) => {
    if (size + chunk.length > maxBytes) return reject(tooLarge(maxBytes));
    if (projectId !== undefined && !arriving.acquire(projectId, chunk.length))
      return reject(busy());
    size += chunk.length;
    chunks.push(chunk);
  });
  request.on('end', () => resolve(Buffer.concat(chunks)));
  request.on('error', () => reject(new Fault('CANCELLED', 'The client left.')));
  try {
    const bytes = await promise;
    if (projectId !== undefined) await turnOf(projectId);
    return bytes;
  } finally {
    clearTimeout(timer);
    if (projectId !== undefined) arriving.release(projectId, size);
    request.removeAllListeners('data');
    // The rest of the body is discarded; gateway/app.ts closes the connection when it continues.
    request.resume();
  }
}

function busy(): Fault {
  const problem = 'Too many request bodies of this project are still arriving.';
  return new Fault('CONCURRENCY_LIMIT', `${problem} Retry the request.`);
}

/**
 * Refuses numbers that JSON does not round-trip, lone surrogates, and keys that could change an
 * object's prototype: they would be stored with another value.
 */
function checkTree(value: Json, depth: number): void {
  if (depth > JSON_DEPTH_MAX) throw malformed('Body is not valid JSON.');
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw malformed('Body holds text that is not valid Unicode.');
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw malformed('Body holds a number that is out of range.');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__' || !key.isWellFormed()) throw malformed('Body is not valid JSON.');
    checkTree(member, depth + 1);
  }
}

function hasBody(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return coding === undefined && length !== undefined && Number(length) > 0;
}

function isJson(request: IncomingMessage): boolean {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = request.headers;
  return JSON_TYPE.test(type) && coding === 'identity';
}

function malformed(message: string, cause?: unknown): Fault {
  return new Fault('MALFORMED_JSON', message, {}, cause);
}
