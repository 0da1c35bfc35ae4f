/** Feeds a request to a multipart parser, within limits on size and time. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { Fault } from '../../../proto/rpc/errors.ts';
import { METADATA_MAX_BYTES, UPLOAD_IDLE_MS } from '../../config.ts';
import { tooLarge } from '../../http/body.ts';

export type Feed = Disposable & {
  parser: busboy.Busboy;
  /** Ends the feed with a fault. */
  fail(fault: Fault): void;
  /** Call this after listeners were added to the parser. */
  start(): void;
};

type Limits = {
  /** In bytes, of the whole form. */
  maxBytes: number;
  /** In bytes, of the file: the limit in the error. */
  shownMaxBytes: number;
};

/**
 * Throws UNSUPPORTED_MEDIA_TYPE or MALFORMED_REQUEST at once. `onFault` receives later faults, the
 * cause first. When disposed, discards the rest of the request, so that the client can still read
 * the answer.
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
    // Counts ignored parts too: a chunked body does not declare its size.
    if (size > maxBytes) fail(tooLarge(shownMaxBytes));
  });
  request.once('end', () => clearTimeout(idle));
  // Requests close also after complete bodies, often before their parts are read.
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

/**
 * The bytes of a part. When the form ends early, the parser destroys the stream with its own error.
 */
export async function* chunksOf(part: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of part) yield chunk;
  } catch (error) {
    throw error instanceof Fault ? error : malformed(error);
  }
}

/**
 * The reader of the form receives the Fault; after another failure there is no reader, and that is
 * not a bug.
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
