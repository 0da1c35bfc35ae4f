/**
 * Buffers the frames of one segment for the encoder: a file in the runner's directory, read once,
 * then removed. All frame buffers of a runner share one disk allowance: when the encoder is so far
 * behind that a project's share is used up, its frames are dropped.
 */
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { Shares } from '../../../proto/sharing/shares.ts';

/**
 * In bytes, of a runner, shared by project (proto/sharing/shares.ts). Ours: a single project has a
 * GiB, half an hour of one busy page at 0.5 MB a second.
 */
export const ALLOWANCE_BYTES = 2 * 1024 ** 3;

export type StoredFrame = {
  /** In ms since 1970. */
  at: number;
  offset: number;
  bytes: number;
};

export type FrameBuffer = {
  readonly frames: readonly StoredFrame[];
  readonly bytes: number;
  /** False when the project's share is used up. Write errors are reported by `read`. */
  add(frame: { jpeg: Buffer; at: number }): boolean;
  read(frame: StoredFrame): Promise<Buffer>;
  remove(): Promise<void>;
};

/** The file is created with the first frame. */
export function openFrameBuffer(path: string, projectId: string, allowance: Shares): FrameBuffer {
  const frames: StoredFrame[] = [];
  let bytes = 0;
  let writing: Promise<FileHandle> | undefined;
  const write = async (jpeg: Buffer, offset: number): Promise<FileHandle> => {
    const file = await (writing ?? open(path, 'wx+', 0o600));
    await file.write(jpeg, 0, jpeg.length, offset);
    return file;
  };
  return {
    frames,
    get bytes() {
      return bytes;
    },
    add({ jpeg, at }) {
      if (!allowance.acquire(projectId, jpeg.length)) return false;
      frames.push({ at, offset: bytes, bytes: jpeg.length });
      writing = write(jpeg, bytes);
      writing.catch(() => undefined); // reported by read
      bytes += jpeg.length;
      return true;
    },
    async read(frame) {
      const file = await writing;
      if (file === undefined) throw new Error('no frame was stored');
      const jpeg = Buffer.allocUnsafe(frame.bytes);
      const { bytesRead } = await file.read(jpeg, 0, frame.bytes, frame.offset);
      if (bytesRead !== frame.bytes) throw new Error('a frame was not stored completely');
      return jpeg;
    },
    async remove() {
      allowance.release(projectId, bytes);
      bytes = 0;
      const file = await writing?.catch(() => undefined);
      await file?.close();
      await rm(path, { force: true });
    },
  };
}
