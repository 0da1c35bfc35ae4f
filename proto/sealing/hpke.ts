/**
 * Sealed values: HPKE (RFC 9180) in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and
 * AES-256-GCM, empty info and additional data, one message. Layout: enc (32 bytes) | ciphertext |
 * tag (16). Clients seal with a project's public key, core opens with its private key.
 */
import type { CipherSuite } from '@hpke/core';

let suite: Promise<CipherSuite> | undefined;

/**
 * Loaded on first use: 43 modules that the start of core would wait for. When they cannot be read,
 * it rejects, and the next call tries again.
 */
export function loadHpke(): Promise<CipherSuite> {
  suite ??= newSuite().catch((error: unknown) => {
    suite = undefined;
    throw error;
  });
  return suite;
}

async function newSuite(): Promise<CipherSuite> {
  const hpke = await import('@hpke/core');
  return new hpke.CipherSuite({
    kem: new hpke.DhkemX25519HkdfSha256(),
    kdf: new hpke.HkdfSha256(),
    aead: new hpke.Aes256Gcm(),
  });
}

/** In bytes: of each key, and of `enc`. */
export const HPKE_KEY_BYTES = 32;
const TAG_BYTES = 16;
/** In bytes: a sealed empty value. */
export const SEALED_MIN_BYTES = HPKE_KEY_BYTES + TAG_BYTES;

/** Raw X25519 keys. */
export type HpkeKeyPair = { publicKey: Uint8Array; privateKey: Uint8Array };

export async function newHpkeKeyPair(): Promise<HpkeKeyPair> {
  const { kem } = await loadHpke();
  const { publicKey, privateKey } = await kem.generateKeyPair();
  const [open, secret] = await Promise.all([
    kem.serializePublicKey(publicKey),
    kem.serializePrivateKey(privateKey),
  ]);
  return { publicKey: new Uint8Array(open), privateKey: new Uint8Array(secret) };
}

/** Throws for a public key that is not 32 bytes of X25519. */
export async function seal(publicKey: Uint8Array, plain: Uint8Array): Promise<Uint8Array> {
  const hpke = await loadHpke();
  const recipientPublicKey = await hpke.kem.importKey('raw', bufferOf(publicKey), true);
  const { enc, ct } = await hpke.seal({ recipientPublicKey }, bufferOf(plain));
  return Buffer.concat([new Uint8Array(enc), new Uint8Array(ct)]);
}

/** Throws for a value that was sealed for another key, or is damaged. */
export async function open(privateKey: Uint8Array, sealed: Uint8Array): Promise<Uint8Array> {
  const hpke = await loadHpke();
  const recipientKey = await hpke.kem.importKey('raw', bufferOf(privateKey), false);
  const enc = bufferOf(sealed.subarray(0, HPKE_KEY_BYTES));
  const plain = await hpke.open({ recipientKey, enc }, bufferOf(sealed.subarray(HPKE_KEY_BYTES)));
  return new Uint8Array(plain);
}

/** A copy: a Buffer may be a part of a larger pool. */
function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
