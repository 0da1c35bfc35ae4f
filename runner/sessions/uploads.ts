/**
 * Files that a session's user puts where its pages can read them: below /tmp/.uploads, as clients
 * name it. A file is whole when it gets its name; one of the same name is replaced. Chrome can read
 * the directory and not write it (runner/browser/jail.ts), so nothing in it leads anywhere else.
 */
import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { SESSION_FILE_MAX_BYTES } from '../../proto/common/limits.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { OpenComponent, PutUpload } from './session.ts';

/** Of a session. Ours. */
export const UPLOAD_LIMITS = { files: 1_000, bytes: 2 * 1024 ** 3 };
/** In bytes. Source: NAME_MAX of Linux. */
const NAME_MAX_BYTES = 255;
/** What is being written has a name that no upload can have: it starts with this. */
const ASIDE = '.part-';

export function uploads(limits = UPLOAD_LIMITS): OpenComponent {
  return async ({ dir }) => {
    const put = putter(join(dir, 'uploads'), limits);
    let isOver = false;
    return {
      async close() {
        isOver = true;
      },
      async putUpload(name, content) {
        await put(name, content).catch((error: unknown) => {
          // its directory has gone with Chrome
          throw isOver ? new Fault('SESSION_ENDED', 'The session has ended.', {}, error) : error;
        });
      },
    };
  };
}

/** Puts files into this directory. Throws INVALID_FIELD for a name, BODY_TOO_LARGE. */
function putter(dir: string, limits: typeof UPLOAD_LIMITS): PutUpload {
  /** In bytes by name, those that are being written included. */
  const sizes = new Map<string, number>();
  const total = (): number => [...sizes.values()].reduce((sum, size) => sum + size, 0);

  return async (name, content) => {
    checkName(name);
    const aside = `${ASIDE}${randomUUID()}`;
    if (sizes.size >= limits.files) {
      throw new Fault('BODY_TOO_LARGE', `A session takes at most ${limits.files} files.`);
    }
    sizes.set(aside, 0);
    try {
      await write(join(dir, aside), content, (more) => {
        const size = (sizes.get(aside) ?? 0) + more;
        sizes.set(aside, size);
        if (size > SESSION_FILE_MAX_BYTES) throw tooLarge('A file', SESSION_FILE_MAX_BYTES);
        if (total() > limits.bytes) throw tooLarge('The files of a session', limits.bytes);
      });
      await rename(join(dir, aside), join(dir, name));
      sizes.set(name, sizes.get(aside) ?? 0);
    } finally {
      sizes.delete(aside);
      await rm(join(dir, aside), { force: true });
    }
  };
}

async function write(
  path: string,
  content: Readable,
  count: (bytes: number) => void,
): Promise<void> {
  // 0644: Chrome has another uid where the runner is root
  await using file = await open(path, 'wx', 0o644);
  await file.chmod(0o644);
  for await (const chunk of content as AsyncIterable<Buffer>) {
    count(chunk.length);
    await file.writeFile(chunk);
  }
}

/** One name, as it will stand in the directory. */
function checkName(name: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
  const isPlain = name !== '' && !/[/\u0000-\u001f\u007f]/.test(name) && name.isWellFormed();
  if (!isPlain || name === '.' || name === '..' || name.startsWith(ASIDE)) {
    throw invalidField('file', 'must have a name that is one, without a directory.');
  }
  if (Buffer.byteLength(name) > NAME_MAX_BYTES) {
    throw invalidField('file', `must have a name of at most ${NAME_MAX_BYTES} bytes.`);
  }
}

function tooLarge(what: string, limitBytes: number): Fault {
  const limit = `${limitBytes / (1 << 20)} MiB`;
  return new Fault('BODY_TOO_LARGE', `${what} must not exceed ${limit}.`, { limitBytes });
}
