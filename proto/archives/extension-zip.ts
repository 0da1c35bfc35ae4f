/**
 * Reads the zip of a browser extension, with the same rules in core and runner: plain files and
 * directories, within limits, with valid checksums. The first violation is an ExtensionError, whose
 * message is for the author of the zip.
 */
import { crc32 } from 'node:zlib';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { PROFILE_LIMITS, ProfileError, profileJudge } from './context-entries.ts';

export const EXTENSION_LIMITS = {
  /** In bytes, unpacked. Ours: the largest extensions in Chrome's store have about 200 MB. */
  unpackedMaxBytes: 512 << 20,
  /** Counts directories that only occur in paths too. Ours. */
  entriesMax: 20_000,
  /** In bytes of manifest.json. Ours. */
  manifestMaxBytes: 1 << 20,
};
/** Added by archivers of macOS and refused by Chrome, which reserves names that begin with `_`. */
const CRUFT = /^__MACOSX(?:\/|$)|(?:^|\/)\.DS_Store$/;
const MANIFEST = 'manifest.json';
/** Permissions that bypass the session's restrictions, with the reason of the refusal. */
const REFUSED_PERMISSIONS: Readonly<Record<string, string>> = {
  proxy: 'connections leave by the ways of the session (see proxies)',
  nativeMessaging: 'no program of the machine can be started',
};

const TYPE_BITS = 0o170000;
const REGULAR = 0o100000;
const DIRECTORY = 0o040000;

export class ExtensionError extends Error {
  override readonly name = 'ExtensionError';
}

export type ExtensionEntry = {
  kind: 'file' | 'directory';
  /** Path inside the extension, without `..`. */
  path: string;
  /** In bytes. */
  size: number;
  /** Fails when the bytes do not match their checksum. */
  body: () => AsyncIterable<Buffer>;
};

/** Yields the entries in order; read the body of an entry before the next one, or not at all. */
export async function* extensionEntries(
  path: string,
  limits = EXTENSION_LIMITS,
): AsyncGenerator<ExtensionEntry> {
  const zip = await translated(openPromise(path, { autoClose: false }));
  const judge = profileJudge({ ...PROFILE_LIMITS, entriesMax: limits.entriesMax });
  let unpacked = 0;
  try {
    if (zip.entryCount > limits.entriesMax) throw tooMany(limits.entriesMax);
    const entries = zip.eachEntry();
    for (;;) {
      const { value: entry, done } = await translated(entries.next());
      if (done) return;
      if (CRUFT.test(entry.fileName)) continue;
      const kind = kindOf(entry);
      const { uncompressedSize: size } = entry;
      unpacked += size;
      if (unpacked > limits.unpackedMaxBytes) {
        const most = limits.unpackedMaxBytes / (1 << 20);
        throw new ExtensionError(`it must unpack to at most ${most} MiB`);
      }
      const inside = judged(entry, kind, judge);
      if (inside !== '') yield { kind, path: inside, size, body: () => bodyOf(zip, entry) };
    }
  } finally {
    zip.close();
  }
}

/**
 * Reads the whole zip, including its manifest. Throws an ExtensionError, or the signal's reason.
 */
export async function checkExtension(
  path: string,
  { signal, limits = EXTENSION_LIMITS }: { signal?: AbortSignal; limits?: typeof EXTENSION_LIMITS },
): Promise<void> {
  let manifest: string | undefined;
  let deeper: string | undefined;
  for await (const entry of extensionEntries(path, limits)) {
    signal?.throwIfAborted();
    const isManifest = entry.path === MANIFEST && entry.kind === 'file';
    if (entry.path.endsWith(`/${MANIFEST}`)) deeper ??= entry.path;
    if (isManifest && entry.size > limits.manifestMaxBytes) {
      throw new ExtensionError(`manifest.json must be at most ${limits.manifestMaxBytes} bytes`);
    }
    const kept: Buffer[] = [];
    if (entry.kind === 'file') {
      for await (const chunk of entry.body()) if (isManifest) kept.push(chunk);
    }
    if (isManifest) manifest = Buffer.concat(kept).toString();
  }
  if (manifest === undefined) {
    const found = deeper === undefined ? '' : `; it is at ${shown(deeper)}`;
    throw new ExtensionError(`manifest.json must be at the root of the zip${found}`);
  }
  checkManifest(manifest);
}

/**
 * Checks the members that Chrome requires, and refuses the permissions above. Throws an
 * ExtensionError.
 */
export function checkManifest(text: string): void {
  const manifest = jsonOf(text);
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) {
    throw new ExtensionError('manifest.json must be a JSON object');
  }
  const { manifest_version: format, name, version } = manifest as Record<string, unknown>;
  if (format !== 3) throw new ExtensionError('manifest_version must be 3: Chrome loads no other');
  if (typeof name !== 'string' || name === '') {
    throw new ExtensionError('manifest.json must have a name');
  }
  if (typeof version !== 'string' || !/^\d{1,5}(?:\.\d{1,5}){0,3}$/.test(version)) {
    throw new ExtensionError('version in manifest.json must be 1 to 4 numbers with dots between');
  }
  for (const field of ['permissions', 'optional_permissions']) {
    const named = (manifest as Record<string, unknown>)[field];
    for (const [name, why] of Object.entries(REFUSED_PERMISSIONS)) {
      if (!Array.isArray(named) || !named.includes(name)) continue;
      throw new ExtensionError(`${field} in manifest.json must not have ${name}: ${why}`);
    }
  }
}

/**
 * Matches strings, which may contain comment marks, then comments. An unterminated one matches to
 * the end of the text; otherwise every quote inside it would be scanned again.
 */
const COMMENTS = /"(?:\\[\s\S]|[^"\\])*(?:"|\\?$)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g;

/** Chrome allows comments and a byte order mark in a manifest. */
function jsonOf(text: string): unknown {
  const plain = text
    .replace(/^\uFEFF/, '')
    .replace(COMMENTS, (found) => (found.startsWith('"') ? found : ' '));
  try {
    return JSON.parse(plain);
  } catch {
    throw new ExtensionError('manifest.json is not valid JSON');
  }
}

function kindOf(entry: Entry): 'file' | 'directory' {
  const type = (entry.externalFileAttributes >>> 16) & TYPE_BITS;
  const name = shown(entry.fileName);
  if (entry.isEncrypted()) throw new ExtensionError(`${name} is encrypted`);
  if (!entry.canDecodeFileData()) {
    throw new ExtensionError(`${name} is packed in a way that is not supported: use deflate`);
  }
  const isDirectory = entry.fileName.endsWith('/');
  const fits = type === 0 || type === (isDirectory ? DIRECTORY : REGULAR);
  if (!fits) throw new ExtensionError(`${name} is a link or a special file`);
  if (isDirectory && entry.uncompressedSize > 0) {
    throw new ExtensionError(`${name} is a directory with bytes`);
  }
  return isDirectory ? 'directory' : 'file';
}

function judged(
  entry: Entry,
  kind: 'file' | 'directory',
  judge: ReturnType<typeof profileJudge>,
): string {
  const { fileName: path, uncompressedSize: size } = entry;
  try {
    return judge({ kind, path, size, mode: 0 });
  } catch (error) {
    if (!(error instanceof ProfileError)) throw error;
    throw new ExtensionError(`${shown(path)}: ${error.message}`);
  }
}

async function* bodyOf(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  const stream = await translated(zip.openReadStreamPromise(entry));
  let sum = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      sum = crc32(chunk, sum);
      yield chunk;
    }
  } catch (error) {
    throw broken(error);
  }
  if (sum !== entry.crc32) throw new ExtensionError(`${shown(entry.fileName)} is damaged`);
}

/** Translates errors of yauzl. */
async function translated<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw broken(error);
  }
}

/** yauzl's messages contain only positions in the file; disk errors are not errors of the zip. */
function broken(error: unknown): unknown {
  const isOfDisk = (error as NodeJS.ErrnoException).syscall !== undefined;
  if (isOfDisk || error instanceof ExtensionError) return error;
  return new ExtensionError(
    `it is not a valid zip: ${shown((error as Error).message.replace(/\.$/, ''))}`,
  );
}

function tooMany(most: number): ExtensionError {
  return new ExtensionError(`it must hold at most ${most} files`);
}

/** Truncates an untrusted name and removes control characters of terminals. */
function shown(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
  return text.slice(0, 100).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}
