/** A multipart form with one file, in a part of the name `file`; other parts are not looked at. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { type Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { ignore, openFeed } from './multipart.ts';

/** In bytes: what multipart puts around a file. Ours. */
export const FORM_EXTRA_BYTES = 64 * 1024;

export type FileForm = Disposable & {
  /** As it begins to arrive; rejects when the form ends without one. */
  file: Promise<{ name: string; bytes: Readable }>;
  /** Settles when the whole form was read and is good. */
  whole: Promise<void>;
};

/** Throws UNSUPPORTED_MEDIA_TYPE or MALFORMED_REQUEST at once; the rest rejects both promises. */
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
