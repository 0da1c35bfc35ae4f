/**
 * `tabern context upload <context-id> <directory>` and `tabern context download`: transfers the
 * content of a context. An upload is packed and encrypted here with the context's public key; no
 * plaintext leaves this machine or is written to its disk. A download stays encrypted: the private
 * key never leaves the service. The downloaded file is a backup that upload accepts.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sealProfile } from '../../proto/archives/context-writer.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { sizeText } from '../../proto/terminal/size.ts';
import { packProfile } from '../browser/profile/profile.ts';
import { makeTempDir, sweepTemp } from '../machine/stale-runs.ts';
import { openApi, transfer } from './api.ts';
import { type Cli, CliError, command, type Options } from './config.ts';

/** The service ends a transfer after half an hour, and then checks an upload. */
const TRANSFER_TIMEOUT_MS = 2_000_000;
/** Progress is printed at this fraction, and after at least this many bytes. Ours. */
const PROGRESS_SHARE = 0.1;
const PROGRESS_MIN_BYTES = 8 << 20;

type Words = readonly [id: string, directory: string];

/** Exit code 0 when the context has the content of the directory. */
export const upload = command(uploadContext);

/** Exit code 0 when the file is complete. */
export const download = command(downloadContext);

export async function uploadContext(
  [id, given]: Words,
  options: Options,
  cli: Cli,
): Promise<number> {
  const path = resolve(cli.cwd, given);
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new CliError(`there is no ${given}`);
  const { publicKey, uploadUrl } = await openApi(cli).put(`/v1/contexts/${encoded(id)}`);
  if (found.isFile()) await send(path, String(uploadUrl), cli);
  else {
    await sweepTemp();
    const temporary = await makeTempDir('context');
    try {
      const file = join(temporary, 'sealed');
      cli.say(`encrypting ${given}`);
      if (await isLocked(path)) cli.say('warning: it is locked; end the browser that uses it');
      await seal(path, String(publicKey), file);
      await send(file, String(uploadUrl), cli);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  }
  cli.print(options['json'] === true ? JSON.stringify({ id }) : id);
  return 0;
}

export async function downloadContext(
  [id, given]: Words,
  options: Options,
  cli: Cli,
): Promise<number> {
  const { downloadUrl } = await openApi(cli).get(`/v1/contexts/${encoded(id)}/download`);
  const directory = resolve(cli.cwd, given);
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${encoded(id)}.tbcx`);
  const signal = AbortSignal.timeout(TRANSFER_TIMEOUT_MS);
  const answer = await transfer(String(downloadUrl), { signal });
  if (!answer.body) throw new CliError('the service answered with nothing; try again');
  const bytes = Readable.fromWeb(answer.body);
  try {
    await pipeline(
      bytes,
      progress('downloaded', undefined, cli),
      createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new CliError(`${path} exists; move it away`, { cause: error });
    }
    await rm(path, { force: true });
    throw new CliError('the download broke off; try again', { cause: error });
  }
  const { size } = await stat(path);
  cli.print(options['json'] === true ? JSON.stringify({ id, path, size }) : path);
  return 0;
}

async function seal(directory: string, publicKey: string, file: string): Promise<void> {
  try {
    await sealProfile(packProfile(directory), publicKey, file);
  } catch (error) {
    if (error instanceof Fault) throw new CliError(error.message, { cause: error });
    const { code } = error as NodeJS.ErrnoException;
    const why = code === undefined ? 'is a browser still using it?' : `(${code})`;
    throw new CliError(`the directory cannot be packed ${why}`, { cause: error });
  }
}

/** Chrome's lock, or the remains of a crash: packing cannot distinguish them. */
async function isLocked(directory: string): Promise<boolean> {
  return (await lstat(join(directory, 'SingletonLock')).catch(() => undefined)) !== undefined;
}

async function send(file: string, url: string, cli: Cli): Promise<void> {
  const { size } = await stat(file);
  const body = progress('uploaded', size, cli)(createReadStream(file));
  const signal = AbortSignal.timeout(TRANSFER_TIMEOUT_MS);
  const headers = { 'content-type': 'application/octet-stream' };
  const init = { method: 'PUT', headers, signal, body: Readable.from(body), duplex: 'half' };
  const answer = await transfer(url, init as unknown as RequestInit);
  await answer.arrayBuffer();
}

/** Forwards bytes and prints their count. */
function progress(verb: string, size: number | undefined, { say }: Cli) {
  const step = Math.max(PROGRESS_MIN_BYTES, (size ?? 0) * PROGRESS_SHARE);
  return async function* (bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let passed = 0;
    let next = step;
    for await (const chunk of bytes) {
      passed += chunk.length;
      yield chunk;
      if (passed < next) continue;
      say(`${verb} ${sizeText(passed)}${size === undefined ? '' : ` of ${sizeText(size)}`}`);
      next += step;
    }
    say(`${verb} ${sizeText(passed)}`);
  };
}

/** A context id is used in paths, locally and in URLs. */
function encoded(id: string): string {
  return encodeURIComponent(id).replace(/^\.+$/, '_');
}
