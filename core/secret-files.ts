/**
 * Secrets that live in files of the data directory: made once, mode 0600, on disk before they are
 * used.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../proto/env.ts';

/** In characters: shorter means that somebody damaged the file. */
const TOKEN_MIN = 32;

/** The token in that file; a new one of 32 random bytes when there is no file. */
export function tokenFile(path: string): string {
  const token = read(path) ?? make(path);
  if (token.length < TOKEN_MIN)
    throw new ConfigError(`${path} is damaged: delete it and start again`);
  return token;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigError(`${path} cannot be read`, { cause: error });
  }
}

function make(path: string): string {
  const token = randomBytes(32).toString('base64url');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const aside = `${path}.new`;
  rmSync(aside, { force: true });
  writeFileSync(aside, `${token}\n`, { mode: 0o600, flush: true });
  linkSync(aside, path);
  rmSync(aside);
  const directory = openSync(dirname(path), 'r');
  fsyncSync(directory);
  closeSync(directory);
  return token;
}
