/**
 * Encryption of secrets in the database: AES-256-GCM under keys/master.key, bound to the row as
 * associated data. The database alone reveals no secret; a sealed value that was moved to another
 * row, or changed, does not open. Layout: version (1 byte, 1) | nonce (12) | tag (16) | ciphertext.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createFile } from '../../proto/common/durable.ts';
import { DataError } from '../../proto/common/env.ts';
import { Fault } from '../../proto/rpc/errors.ts';

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;
const KEY_BYTES = 32;
const CIPHER = 'aes-256-gcm';

/** Plaintext of the database's sealed check value. */
const CHECK_TEXT = Buffer.from('tabern master key');
const CHECK_DATA = 'master_key_check';

export type Sealer = {
  /** `associatedData` names the row: only the same text opens the value again. */
  seal(plain: Uint8Array, associatedData: string): Buffer;
  /** Throws DATA_CORRUPT when the value is damaged or of another row. */
  open(sealed: Uint8Array, associatedData: string): Buffer;
  /** Derives 32 bytes for one purpose, deterministically; they do not reveal the master key. */
  derive(purpose: string): Buffer;
};

/**
 * Encrypts under `key`, 32 bytes. The nonce is random: safe for about 2^32 values, far more than a
 * database contains.
 */
export function sealerOf(key: Uint8Array): Sealer {
  return {
    seal(plain, associatedData) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(associatedData));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, associatedData) {
      try {
        return opened(key, sealed, associatedData);
      } catch (cause) {
        throw new Fault(
          'DATA_CORRUPT',
          'A stored secret does not open.',
          { place: associatedData },
          cause,
        );
      }
    },
    derive: (purpose) => Buffer.from(hkdfSync('sha256', key, '', purpose, KEY_BYTES)),
  };
}

function opened(key: Uint8Array, sealed: Uint8Array, associatedData: string): Buffer {
  if (sealed[0] !== VERSION || sealed.length < HEAD_BYTES) throw new Error('unknown layout');
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES));
  decipher.setAAD(Buffer.from(associatedData));
  return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
}

/**
 * The sealer of a data directory. `check` is the database's sealed check value, null before the
 * first start: then the key file is created, unless it exists, and the new check value must be
 * stored. Throws with a one-line fix when the key is missing, damaged or of another database: a new
 * key would silently lose every secret.
 */
export function openSealer(
  path: string,
  check: Uint8Array | null,
): { sealer: Sealer; check: Uint8Array } {
  const key = readKey(path) ?? (check === null ? makeKey(path) : undefined);
  if (key === undefined) throw new DataError(`${path} is missing: restore it from the backup`);
  const sealer = sealerOf(key);
  if (check === null) return { sealer, check: sealer.seal(CHECK_TEXT, CHECK_DATA) };
  if (!isKeyOf(sealer, check)) {
    throw new DataError(`${path} is not the key of this database: restore the one it had`);
  }
  return { sealer, check };
}

function isKeyOf(sealer: Sealer, check: Uint8Array): boolean {
  try {
    return sealer.open(check, CHECK_DATA).equals(CHECK_TEXT);
  } catch (error) {
    if (error instanceof Fault) return false;
    throw error;
  }
}

function readKey(path: string): Buffer | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new DataError(`${path} cannot be read`, { cause: error });
  }
  const key = Buffer.from(text, 'base64');
  if (key.length !== KEY_BYTES || key.toString('base64') !== text) {
    throw new DataError(`${path} is not a key of ${KEY_BYTES} bytes in base64`);
  }
  return key;
}

/** Synced before it is used, complete or absent; never replaces an existing key. */
function makeKey(path: string): Buffer {
  const key = randomBytes(KEY_BYTES);
  createFile(path, `${key.toString('base64')}\n`);
  return key;
}
