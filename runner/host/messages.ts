/**
 * The protocol between the supervisor and a function host. Framing: u32 big-endian length, then one
 * JSON object; a frame may carry one text after the object, separated by a line break
 * (JSON.stringify writes none), so that the JSON of a result or of secrets is sent unchanged and
 * is not escaped again.
 * Both readers validate everything they use: an invalid frame throws FrameError, and the supervisor
 * then kills the host with SIGKILL, because a host's messages are controlled by the tenant.
 */

/** Of a frame from the host, in bytes: a result of 6 MiB with its object fits. */
export const FROM_HOST_MAX_BYTES = 8 * 1024 * 1024;
/** Of a frame from the supervisor, in bytes: secrets of 256 KiB fit, each byte as six. Ours. */
export const TO_HOST_MAX_BYTES = 2 * 1024 * 1024;
/** Lines of one log frame. Ours. */
export const LOG_LINES_MAX = 1_000;
/** Of one line, in bytes of UTF-8. Ours. */
export const LINE_MAX_BYTES = 64 * 1024;
/** Of a run's log, in bytes, including the cost of each line. Ours. */
export const RUN_MAX_BYTES = 1024 * 1024;
/** Of each line in a run's log. Ours: otherwise a million empty lines would be free. */
export const LINE_COST_BYTES = 16;
export const MARKER = '[log cut: more than 1 MiB]';
/** Of an error's name, message and stack, each, in bytes of UTF-8. Ours. */
export const ERROR_TEXT_MAX_BYTES = 16 * 1024;
/** Of a frame without its text, in bytes. Ours: params or the lines of a frame fit, escaped. */
const HEAD_MAX_BYTES = 4 * 1024 * 1024;
/** Ours: of a frame, and the exact number for a line. Our own host sends no more. */
const [MEMBERS_MAX, LINE_MEMBERS] = [8, 3];
/** Ours: ten functions of 64 KiB each, as bundles report them. */
const MANIFESTS_MAX_CHARACTERS = 2 * 1024 * 1024;
const TIME_MAX_MS = 9e12;
const HEADER_BYTES = 4;
const LINE_BREAK = 10;

export const LEVELS = ['log', 'info', 'warn', 'error', 'debug'] as const;
export type Level = (typeof LEVELS)[number];
/** One console line, without its line break; timestamp in ms since 1970. */
export type LogLine = { level: Level; message: string; timestamp: number };

/** An error as the user threw it; texts are empty where it had none. */
export type ErrorText = { name: string; message: string; stack: string };

/** Error message: the file is not a bundle. */
export const NO_REGISTRY = 'the bundle has no registry of functions';

/** Supervisor -> host. `bundle` is the sha256 that names the file in the functions directory. */
export type ToHost =
  | {
      type: 'invoke';
      id: string;
      bundle: string;
      functionName: string;
      paramsJson: string;
      session: { id: string; connectUrl: string };
      region: string;
      /** A JSON object: values by name. */
      secretsJson: string;
    }
  | { type: 'introspect'; id: string; bundle: string }
  | { type: 'abort'; id: string };

/** Why a thread was retired after a run; empty when it was kept. */
const RETIREMENTS = ['', 'left something behind', 'fresh', 'aborted', 'died', 'memory'] as const;
export type Retirement = (typeof RETIREMENTS)[number];

/** Host -> supervisor. A run: log*, then at most one of result, manifests, error, then done. */
export type FromHost =
  | { type: 'ready'; cdpPort: number }
  | { type: 'log'; id: string; lines: LogLine[] }
  | { type: 'result'; id: string; json: string | undefined }
  | { type: 'manifests'; id: string; json: string }
  | ({ type: 'error'; id: string } & ErrorText)
  | { type: 'done'; id: string; retired: Retirement };

/** A frame that our own peer would never send. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** The bytes of one frame. */
export function encode(message: ToHost | FromHost): Buffer {
  if (message.type === 'result' || message.type === 'manifests') {
    const { json, ...head } = message;
    return json === undefined ? framed(head) : framed(head, json);
  }
  if (message.type === 'invoke') {
    const { secretsJson, ...head } = message;
    return framed(head, secretsJson);
  }
  return framed(message);
}

function framed(head: object, text?: string): Buffer {
  const body = text === undefined ? JSON.stringify(head) : `${JSON.stringify(head)}\n${text}`;
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + Buffer.byteLength(body));
  bytes.writeUInt32BE(bytes.length - HEADER_BYTES);
  bytes.write(body, HEADER_BYTES);
  return bytes;
}

/** Splits a stream of bytes into frames. Not to be used after it has thrown a FrameError. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #body: Buffer | undefined;
  #filled = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bodies of the frames that this chunk completed. */
  push(chunk: Buffer): Buffer[] {
    const bodies: Buffer[] = [];
    let at = 0;
    while (at < chunk.length) {
      const target = this.#body ?? this.#header;
      const copied = chunk.copy(target, this.#filled, at);
      at += copied;
      this.#filled += copied;
      if (this.#filled < target.length) break;
      this.#filled = 0;
      if (this.#body !== undefined) bodies.push(this.#body);
      this.#body = this.#body === undefined ? this.#nextBody() : undefined;
    }
    return bodies;
  }

  #nextBody(): Buffer {
    const length = this.#header.readUInt32BE();
    if (length === 0 || length > this.#maxBytes) throw new FrameError(`a frame of ${length} bytes`);
    return Buffer.allocUnsafe(length);
  }
}

/** Parses and validates a frame from the supervisor. */
export function readToHost(body: Buffer): ToHost {
  const { head, rest = '{}' } = split(body);
  const id = text(head, 'id');
  if (head['type'] === 'abort') return { type: 'abort', id };
  const bundle = text(head, 'bundle');
  if (head['type'] === 'introspect') return { type: 'introspect', id, bundle };
  if (head['type'] !== 'invoke') throw new FrameError('an unknown type');
  const session = record(head['session']);
  return {
    type: 'invoke',
    id,
    bundle,
    functionName: text(head, 'functionName'),
    paramsJson: text(head, 'paramsJson'),
    session: { id: text(session, 'id'), connectUrl: text(session, 'connectUrl') },
    region: text(head, 'region'),
    secretsJson: rest,
  };
}

/** Parses and validates a frame from a host; only the named members are kept. */
export function readFromHost(body: Buffer): FromHost {
  const { head, rest } = split(body);
  if (Object.keys(head).length > MEMBERS_MAX) throw new FrameError('too many members');
  const { type } = head;
  if (type === 'ready') return { type, cdpPort: port(head['cdpPort']) };
  const id = text(head, 'id');
  if (type === 'log') return { type, id, lines: lines(head['lines']) };
  if (type === 'result') return { type, id, json: rest };
  if (type === 'manifests') return { type, id, json: manifestsText(rest) };
  if (type === 'error') return { type, id, ...errorText(head) };
  if (type === 'done') return { type, id, retired: retirement(head['retired']) };
  throw new FrameError('an unknown type');
}

type Members = Readonly<Record<string, unknown>>;

function split(body: Buffer): { head: Members; rest: string | undefined } {
  const at = body.indexOf(LINE_BREAK);
  const head = at < 0 ? body : body.subarray(0, at);
  if (head.length > HEAD_MAX_BYTES) throw new FrameError(`a head of ${head.length} bytes`);
  return {
    head: record(parsed(head.toString('utf8'))),
    rest: at < 0 ? undefined : body.subarray(at + 1).toString('utf8'),
  };
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch (cause) {
    throw new FrameError('not JSON', { cause });
  }
}

function record(value: unknown): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new FrameError('not an object');
  }
  return value as Members;
}

function text(members: Members, name: string, charactersMax = TO_HOST_MAX_BYTES): string {
  const value = members[name];
  if (typeof value !== 'string') throw new FrameError(`${name} is no text`);
  if (value.length > charactersMax) throw new FrameError(`${name} is too long`);
  return value;
}

/** Ours: a result's size is checked where it is stored, and no manifest is as large. */
function manifestsText(value = ''): string {
  if (value === '') throw new FrameError('no manifests');
  if (value.length > MANIFESTS_MAX_CHARACTERS) throw new FrameError('manifests are too long');
  return value;
}

function port(value: unknown): number {
  if (Number.isInteger(value) && Number(value) > 0 && Number(value) < 65_536) return Number(value);
  throw new FrameError('no port');
}

function retirement(value: unknown): Retirement {
  const found = RETIREMENTS.find((one) => one === value);
  if (found === undefined) throw new FrameError('an unknown retirement');
  return found;
}

/** A value of Date.now, up to the year 2255: core stores it in 64 bits, and Date can read it. */
function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= TIME_MAX_MS;
}

function errorText(head: Members): ErrorText {
  const part = (name: string): string => text(head, name, ERROR_TEXT_MAX_BYTES);
  return { name: part('name'), message: part('message'), stack: part('stack') };
}

function lines(value: unknown): LogLine[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > LOG_LINES_MAX) {
    throw new FrameError('no lines');
  }
  return value.map((one) => {
    const line = record(one);
    if (Object.keys(line).length > LINE_MEMBERS) throw new FrameError('no line');
    const level = LEVELS.find((known) => known === line['level']);
    const timestamp = line['timestamp'];
    if (level === undefined) throw new FrameError('an unknown level');
    if (!isTime(timestamp)) throw new FrameError('no timestamp');
    return { level, message: text(line, 'message', LINE_MAX_BYTES), timestamp };
  });
}
