/**
 * The bytes of a recording's signed URL: one segment, or the whole video of a page: init segment,
 * index, media segments. Supports any range, so that players can seek. The parts are not merged on
 * disk.
 */

import type { ReadBlobResponse } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { Fault, invalidField, notFound } from '../../../proto/rpc/errors.ts';
import type { Blobs } from '../../files/blobs.ts';
import { isDamage, type Stored } from '../../files/checked-bytes.ts';
import type { RecordingPart } from '../../store/types/recordings.ts';
import type { Store } from '../../store/types.ts';
import type { LinkedRecording, RecordingLinks } from './links.ts';
import { mp4Index } from './mp4-index.ts';

type Options = {
  store: Pick<Store, 'listRecordingParts'>;
  files: Pick<Blobs, 'readRange'>;
  links: Pick<RecordingLinks, 'read'>;
};

type Wanted = { url: string; offset?: number | undefined; length?: number | undefined };
/** In memory, or from a file. */
type Piece = { size: number; bytes: Buffer } | { size: number; blob: Stored };

export type RecordingBytes = ReturnType<typeof recordingBytes>;

export function recordingBytes({ store, files, links }: Options) {
  async function* bytesOf(piece: Piece, start: number, end: number): AsyncGenerator<Buffer> {
    if ('bytes' in piece) {
      yield piece.bytes.subarray(start, end);
      return;
    }
    try {
      yield* files.readRange(piece.blob, start, end);
    } catch (error) {
      throw isDamage(error) ? error : unreadable(error);
    }
  }

  return async function* read(wanted: Wanted): AsyncGenerator<ReadBlobResponse> {
    const { url, offset = 0, length } = wanted;
    const linked = await links.read(url);
    const pieces = piecesOf(linked, await store.listRecordingParts(linked));
    const size = pieces.reduce((sum, piece) => sum + piece.size, 0);
    checkRange({ offset, length }, size);
    const end = Math.min(size, offset + (length ?? size));
    yield { chunk: Buffer.alloc(0), size };
    let at = 0;
    for (const piece of pieces) {
      const from = Math.max(offset - at, 0);
      const to = Math.min(end - at, piece.size);
      if (from < to) {
        for await (const chunk of bytesOf(piece, from, to)) yield { chunk, size: undefined };
      }
      at += piece.size;
    }
  };
}

export function unreadable(cause: unknown): Fault {
  const message = 'Failed to reach the recording service. Retry the request.';
  return new Fault('RECORDING_STORE', message, {}, cause);
}

function piecesOf(
  { sessionId, number }: LinkedRecording,
  parts: readonly RecordingPart[],
): Piece[] {
  const wanted = number === undefined ? parts : parts.filter((part) => part.number === number);
  const files = wanted.map(({ blobId: id, size, sha256 }) => {
    return { size, blob: { id, size, sha256 } };
  });
  const [first, ...segments] = files;
  if (first === undefined) throw notFound('Recording', sessionId);
  if (number !== undefined) return files;
  const durations = parts.slice(1).map(({ startMs, endMs }) => endMs - startMs);
  const entries = segments.map(({ size }, index) => ({ size, durationMs: durations[index] ?? 0 }));
  const index = mp4Index(entries);
  return [first, { size: index.length, bytes: index }, ...segments];
}

function checkRange(
  { offset, length }: { offset: number; length: number | undefined },
  size: number,
): void {
  if (!Number.isInteger(offset) || offset < 0 || offset > size) {
    throw invalidField('offset', 'must be within the recording.');
  }
  if (length !== undefined && (!Number.isInteger(length) || length < 0)) {
    throw invalidField('length', 'must be a count of bytes.');
  }
}
