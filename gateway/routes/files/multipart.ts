/**
 * Multipart forms with one file and at most one text, in either order, within limits on size and
 * time. The file is streamed while the form is received.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { asFault, Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { METADATA_MAX_BYTES } from '../../config.ts';
import { tooLarge } from '../../http/body.ts';
import { limited, watchUpload } from './upload-stream.ts';

/** In bytes: multipart framing around the parts. Ours. */
export const FRAMING_MAX_BYTES = 64 * 1024;

type FilePart = { name: string; maxBytes: number; isNamed?: true; mayBeEmpty?: true };
/** Sent as a field or as a file. `read` throws for an invalid text. */
type TextPart<T> = { name: string; read(text: string): T };
type Parts<T> = { file: FilePart; text?: TextPart<T> };

type File = { name: string; bytes: Readable };
export type Form<T> = Disposable & {
  /** Resolves when the file begins; rejects when the form has none. */
  fileName: Promise<string>;
  /** The bytes of the file. Ends without an error only when the whole form was valid. */
  bytes: AsyncIterable<Buffer>;
  /** Resolves with the value of the text when the whole form was valid. */
  text: Promise<T>;
};

/**
 * Throws UNSUPPORTED_MEDIA_TYPE or MALFORMED_REQUEST at once; later faults reject every promise.
 * When disposed, discards the rest of the request, so that the client can still read the answer.
 */
export function openForm<T = undefined>(request: IncomingMessage, parts: Parts<T>): Form<T> {
  const parser = openParser(request);
  const file = Promise.withResolvers<File>();
  const text = Promise.withResolvers<T>();
  const fail = (fault: Fault) => {
    file.reject(fault);
    text.reject(fault);
    file.promise.then(({ bytes }) => bytes.destroy(fault), ignore);
    request.unpipe(parser);
    request.resume();
  };
  const fileName = file.promise.then(({ name }) => name);
  for (const promise of [fileName, text.promise]) promise.catch(ignore);
  const watch = watchUpload(request, fail);
  limitSize(request, parts, fail);
  parser.on('error', (cause) => fail(malformed(cause)));
  readParts(parser, parts, { file: file.resolve, text: text.resolve, fail });
  request.pipe(parser);
  return {
    fileName,
    bytes: bytesOf(parts.file, file.promise, text.promise),
    text: text.promise,
    [Symbol.dispose]() {
      watch[Symbol.dispose]();
      fail(new Fault('CANCELLED', 'The upload ended.'));
    },
  };
}

/** Counts ignored parts too: a chunked body does not declare its size. */
function limitSize(
  request: IncomingMessage,
  { file, text }: Parts<unknown>,
  fail: (fault: Fault) => void,
): void {
  const maxBytes = file.maxBytes + (text ? METADATA_MAX_BYTES : 0) + FRAMING_MAX_BYTES;
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) fail(tooLarge(file.maxBytes));
  });
}

type Found<T> = { file(file: File): void; text(value: T): void; fail(fault: Fault): void };

/** Reports the file when it begins, the text when the whole form was valid, or the first Fault. */
function readParts<T>(parser: busboy.Busboy, { file, text }: Parts<T>, found: Found<T>): void {
  const refuse = (name: string, problem: string) => found.fail(invalidField(name, problem));
  let hasFile = false;
  let read: { value: T } | undefined;
  const take = (given: string) => {
    if (!text) return;
    if (read) return refuse(text.name, 'must be given once.');
    try {
      read = { value: text.read(given) };
    } catch (error) {
      found.fail(asFault(error));
    }
  };
  parser.on('field', (name, given) => {
    if (name === text?.name) take(given);
    if (name === file.name && file.isNamed) refuse(name, 'must be a file with a name.');
  });
  parser.on('file', (name, bytes, { filename = '' }) => {
    bytes.on('error', ignore);
    if (name === text?.name) {
      textOf(bytes).then(take, found.fail);
    } else if (name === file.name && !hasFile) {
      hasFile = true;
      if (file.isNamed && filename === '') refuse(name, 'must have a name.');
      found.file({ name: filename, bytes });
    } else {
      if (name === file.name) refuse(name, 'must be given once.');
      bytes.resume();
    }
  });
  parser.once('close', () => {
    if (!hasFile) refuse(file.name, 'is required.');
    else if (text && !read) refuse(text.name, 'is required.');
    else found.text(read?.value as T);
  });
}

async function* bytesOf(
  { name, maxBytes, mayBeEmpty }: FilePart,
  file: Promise<File>,
  whole: Promise<unknown>,
): AsyncGenerator<Buffer> {
  let isEmpty = true;
  for await (const chunk of limited(chunksOf((await file).bytes), maxBytes)) {
    isEmpty = false;
    yield chunk;
  }
  if (isEmpty && !mayBeEmpty) throw invalidField(name, 'must not be empty.');
  await whole;
}

/** When the form ends early, the parser destroys the stream of a part with its own error. */
async function* chunksOf(part: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of part) yield chunk;
  } catch (error) {
    throw error instanceof Fault ? error : malformed(error);
  }
}

/** A longer text is cut where its reader still sees that it is too long. */
async function textOf(part: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunksOf(part)) {
    if (size <= METADATA_MAX_BYTES) chunks.push(chunk);
    size += chunk.length;
  }
  return Buffer.concat(chunks).toString();
}

/** The reader of the form receives the Fault. An error without a reader is not a bug. */
function ignore(): void {}

function openParser(request: IncomingMessage): busboy.Busboy {
  const type = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    throw new Fault('UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be multipart/form-data.');
  }
  try {
    return busboy({
      headers: request.headers,
      defParamCharset: 'utf8', // as all clients encode file names
      limits: { fieldSize: METADATA_MAX_BYTES + 1, fields: 8, files: 3, parts: 16 },
    });
  } catch (cause) {
    throw new Fault('MALFORMED_REQUEST', 'The multipart boundary is missing.', {}, cause);
  }
}

function malformed(cause: unknown): Fault {
  const message = 'The body is not valid multipart/form-data.';
  return new Fault('MALFORMED_REQUEST', message, {}, cause);
}
