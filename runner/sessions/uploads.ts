/**
 * Files that a session's user uploads for its pages, which read them below /tmp/.uploads. A file
 * is written to a temporary name and renamed when complete; it replaces a file of the same name.
 * Chrome can read the directory and not write it (runner/browser/jail.ts), so it has no links.
 */
import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { SESSION_FILE_MAX_BYTES } from '../../proto/common/limits.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { OpenComponent, PutUpload } from './session.ts';

/** For one session. Ours. */
const UPLOAD_LIMITS = { files: 1_000, bytes: 2 * 1024 ** 3 };
/** In bytes. Source: NAME_MAX of Linux. */
const NAME_MAX_BYTES = 255;
/** Prefix of temporary names; no upload may have such a name. */
const PART = '.part-';

export function uploads(limits = UPLOAD_LIMITS): OpenComponent {
  return async ({ dir }) => {
    const put = putter(join(dir, 'uploads'), limits);
    let hasEnded = false;
    return {
      async close() {
        hasEnded = true;
      },
      async putUpload(name, content) {
        await put(name, content).catch((error: unknown) => {
          // the directory was removed with Chrome
          throw hasEnded ? new Fault('SESSION_ENDED', 'The session has ended.', {}, error) : error;
        });
      },
    };
  };
}

/** Puts files into this directory. Throws INVALID_FIELD for a name, BODY_TOO_LARGE. */
function putter(dir: string, limits: typeof UPLOAD_LIMITS): PutUpload {
  /** In bytes by name, including files that are being written. */
  const sizes = new Map<string, number>();
  const total = (): number => [...sizes.values()].reduce((sum, size) => sum + size, 0);

  return async (name, content) => {
    checkName(name);
    const part = `${PART}${randomUUID()}`;
    if (sizes.size >= limits.files) {
      throw new Fault('BODY_TOO_LARGE', `A session takes at most ${limits.files} files.`);
    }
    sizes.set(part, 0);
    try {
      await write(join(dir, part), content, (more) => {
        const size = (sizes.get(part) ?? 0) + more;
        sizes.set(part, size);
        if (size > SESSION_FILE_MAX_BYTES) throw tooLarge('A file', SESSION_FILE_MAX_BYTES);
        if (total() > limits.bytes) throw tooLarge('The files of a session', limits.bytes);
      });
      await rename(join(dir, part), join(dir, name));
      sizes.set(name, sizes.get(part) ?? 0);
    } finally {
      sizes.delete(part);
      await rm(join(dir, part), { force: true });
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

/** The file's name in the directory. */
function checkName(name: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters.
  const isPlain = name !== '' && !/[/\u0000-\u001f\u007f]/.test(name) && name.isWellFormed();
  if (!isPlain || name === '.' || name === '..' || name.startsWith(PART)) {
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
