/** Feeds a request into a parser of its parts, within a size and a time. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { Fault } from '../../../proto/rpc/errors.ts';
import { METADATA_MAX_BYTES, UPLOAD_IDLE_MS } from '../../config.ts';
import { tooLarge } from '../../http/body.ts';

export type Feed = Disposable & {
  parser: busboy.Busboy;
  /** Ends it with what is wrong. */
  fail(fault: Fault): void;
  /** To be called when the parser is listened to. */
  start(): void;
};

type Limits = {
  /** In bytes, of the whole form. */
  maxBytes: number;
  /** In bytes, of what is in it: what a client is told. */
  shownMaxBytes: number;
};

/**
 * Throws UNSUPPORTED_MEDIA_TYPE or MALFORMED_REQUEST at once; what comes later is told to
 * `onFault`, first its reason, perhaps others after it. Disposed of, it drops what is left, so that
 * an answer can still be read.
 */
export function openFeed(
  request: IncomingMessage,
  { maxBytes, shownMaxBytes }: Limits,
  onFault: (fault: Fault) => void,
): Feed {
  const parser = openParser(request);
  const fail = (fault: Fault) => {
    onFault(fault);
    request.unpipe(parser);
    request.resume();
  };
  const idle = setTimeout(
    () => fail(new Fault('REQUEST_TIMEOUT', 'The upload took too long to arrive.')),
    UPLOAD_IDLE_MS,
  );
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    idle.refresh();
    size += chunk.length;
    // Parts that nobody asked for count too: a chunked body does not tell its size.
    if (size > maxBytes) fail(tooLarge(shownMaxBytes));
  });
  request.once('end', () => clearTimeout(idle));
  // A request that arrived whole closes too, often before its parts are read.
  request.once('close', () => {
    if (!request.complete) fail(new Fault('CANCELLED', 'The client left.'));
  });
  parser.on('error', (cause) => fail(malformed(cause)));
  return {
    parser,
    fail,
    start: () => void request.pipe(parser),
    [Symbol.dispose]() {
      clearTimeout(idle);
      fail(new Fault('CANCELLED', 'The upload ended.'));
    },
  };
}

/** The bytes of a part. When the form breaks off, the parser destroys it with its own error. */
export async function* chunksOf(part: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of part) yield chunk;
  } catch (error) {
    throw error instanceof Fault ? error : malformed(error);
  }
}

/**
 * Whoever awaits the form sees its Fault; when the upload ended for another reason nobody does, and
 * that is no bug.
 */
export function ignore(): void {}

function openParser(request: IncomingMessage): busboy.Busboy {
  const type = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    throw new Fault('UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be multipart/form-data.');
  }
  try {
    return busboy({
      headers: request.headers,
      defParamCharset: 'utf8', // as every client writes the names of files
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
