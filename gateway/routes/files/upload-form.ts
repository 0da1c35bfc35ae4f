/**
 * Multipart forms. A build's form has `metadata` (JSON text) and `archive` (gzip tar), in either
 * order, each as a field or as a file, within limits on size and time.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { DescMessage } from '@bufbuild/protobuf';
import type busboy from 'busboy';
import { ARCHIVE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { asFault, Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { METADATA_MAX_BYTES, UPLOAD_MAX_BYTES } from '../../config.ts';
import { parseJson } from '../../http/body.ts';
import { checkBody } from '../../rest/json-validation.ts';
import { chunksOf, ignore, openFeed } from './multipart.ts';

type Metadata = { entrypoint: string; projectId: string | undefined };
export type Form = Disposable & {
  /** The archive's bytes; rejects when the form has none. */
  archive: Promise<Readable>;
  /** Settles when the whole form was read. */
  metadata: Promise<Metadata>;
};

/**
 * Reads the request as a form; `input` is the message with the allowed fields of the metadata.
 * Throws UNSUPPORTED_MEDIA_TYPE or MALFORMED_REQUEST at once; later faults reject both promises.
 */
export function openForm(request: IncomingMessage, input: DescMessage): Form {
  const archive = Promise.withResolvers<Readable>();
  const metadata = Promise.withResolvers<Metadata>();
  const limits = { maxBytes: UPLOAD_MAX_BYTES, shownMaxBytes: ARCHIVE_MAX_BYTES };
  const feed = openFeed(request, limits, (fault) => {
    archive.reject(fault);
    metadata.reject(fault);
    archive.promise.then((part) => part.destroy(fault), ignore);
  });
  metadata.promise.catch(ignore);
  const { parser, fail } = feed;
  readParts(parser, { archive: archive.resolve, metadata: metadata.resolve, fail }, input);
  feed.start();
  return {
    archive: archive.promise,
    metadata: metadata.promise,
    [Symbol.dispose]: () => feed[Symbol.dispose](),
  };
}

type Found = {
  archive(part: Readable): void;
  metadata(metadata: Metadata): void;
  fail(fault: Fault): void;
};

/**
 * Reports the archive when it begins, the metadata when the whole form was valid, or the first
 * Fault.
 */
function readParts(parser: busboy.Busboy, found: Found, input: DescMessage): void {
  let archive: Readable | undefined;
  let metadata: Metadata | undefined;
  const take = (text: string) => {
    try {
      if (metadata) throw invalidField('metadata', 'must be given once.');
      metadata = metadataOf(text, input);
    } catch (error) {
      found.fail(asFault(error));
    }
  };
  parser.on('field', (name, text) => {
    if (name === 'metadata') take(text);
  });
  parser.on('file', (name, part) => {
    part.on('error', ignore);
    if (name === 'metadata') {
      textOf(part).then(take, found.fail);
    } else if (name === 'archive' && !archive) {
      archive = part;
      found.archive(part);
    } else {
      if (name === 'archive') found.fail(invalidField('archive', 'must be given once.'));
      part.resume();
    }
  });
  parser.once('close', () => {
    if (!archive) found.fail(invalidField('archive', 'is required.'));
    else if (!metadata) found.fail(invalidField('metadata', 'is required.'));
    else found.metadata(metadata);
  });
}

/** Only these two fields: clients may not set other fields of the request. */
function metadataOf(text: string, input: DescMessage): Metadata {
  if (Buffer.byteLength(text) > METADATA_MAX_BYTES) throw invalidField('metadata', 'is too large.');
  const { entrypoint, projectId } = checkBody(input, metadataJson(text), false);
  if (typeof entrypoint !== 'string') throw invalidField('metadata.entrypoint', 'is required.');
  return { entrypoint, projectId: typeof projectId === 'string' ? projectId : undefined };
}

function metadataJson(text: string) {
  try {
    return parseJson(Buffer.from(text));
  } catch (cause) {
    throw new Fault(
      'INVALID_FIELD',
      '`metadata` must be a JSON object.',
      { field: 'metadata' },
      cause,
    );
  }
}

/** A client may send the metadata as a file part; `metadataOf` refuses truncated metadata. */
async function textOf(part: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunksOf(part)) {
    if (size <= METADATA_MAX_BYTES) chunks.push(chunk);
    size += chunk.length;
  }
  return Buffer.concat(chunks).toString();
}

/** In bytes: multipart framing around a file. Ours. */
export const FORM_EXTRA_BYTES = 64 * 1024;

export type FileForm = Disposable & {
  /** Resolves when the file begins; rejects when the form has none. */
  file: Promise<{ name: string; bytes: Readable }>;
  /** Settles when the whole form was read and valid. */
  whole: Promise<void>;
};

/**
 * Throws UNSUPPORTED_MEDIA_TYPE or MALFORMED_REQUEST at once; later faults reject both promises.
 */
export function openFileForm(request: IncomingMessage, fileMaxBytes: number): FileForm {
  const file = Promise.withResolvers<{ name: string; bytes: Readable }>();
  const whole = Promise.withResolvers<void>();
  whole.promise.catch(ignore);
  const limits = { maxBytes: fileMaxBytes + FORM_EXTRA_BYTES, shownMaxBytes: fileMaxBytes };
  let isThere = false;
  const feed = openFeed(request, limits, (fault: Fault) => {
    file.reject(fault);
    whole.reject(fault);
    file.promise.then(({ bytes }) => bytes.destroy(fault), ignore);
  });
  feed.parser.on('field', (field) => {
    if (field === 'file') feed.fail(invalidField('file', 'must be a file with a name.'));
  });
  feed.parser.on('file', (field, bytes, { filename }) => {
    bytes.on('error', ignore);
    if (field === 'file' && isThere) feed.fail(invalidField('file', 'must be given once.'));
    if (field !== 'file' || isThere) {
      bytes.resume();
      return;
    }
    isThere = true;
    file.resolve({ name: filename ?? '', bytes });
  });
  feed.parser.once('close', () => {
    if (isThere) whole.resolve();
    else feed.fail(invalidField('file', 'is required.'));
  });
  feed.start();
  return {
    file: file.promise,
    whole: whole.promise,
    [Symbol.dispose]: () => feed[Symbol.dispose](),
  };
}
