/** Uploads as streams: deadlines and limits while they arrive. */
import type { IncomingMessage } from 'node:http';
import { Fault } from '../../../proto/rpc/errors.ts';
import { UPLOAD_IDLE_MS } from '../../config.ts';
import { tooLarge } from '../../http/body.ts';

/** Fails an upload whose client disconnects, or sends nothing for UPLOAD_IDLE_MS. */
export function watchUpload(request: IncomingMessage, fail: (fault: Fault) => void): Disposable {
  const slow = new Fault('REQUEST_TIMEOUT', 'The upload took too long to arrive.');
  const idle = setTimeout(() => fail(slow), UPLOAD_IDLE_MS);
  request.on('data', () => idle.refresh());
  request.once('end', () => clearTimeout(idle));
  // Requests close also after complete bodies, often before their parts are read.
  request.once('close', () => {
    if (!request.complete) fail(new Fault('CANCELLED', 'The client left.'));
  });
  return { [Symbol.dispose]: () => clearTimeout(idle) };
}

/** The chunks. Throws BODY_TOO_LARGE when they exceed the limit. */
export async function* limited(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}
