/**
 * Generates one RSA key pair in a thread. Synchronous: the asynchronous generator occupies the
 * thread pool of file reads, and delayed one read by 0.7 to 2.9 s (measured).
 */
import { generateKeyPairSync } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';

/**
 * In bits. 140 ms of CPU per key; 2048 bits take 38 ms, with less margin for data that is kept for
 * years.
 */
const MODULUS_BITS = 3_072;

if (isMainThread) throw new Error('core/contexts/key-thread.ts runs in a thread of its own only');

export type KeyPair = {
  /** SPKI PEM. */
  publicKey: string;
  /** PKCS#8 DER. */
  privateKey: Uint8Array;
};

export default function generate(): KeyPair {
  return generateKeyPairSync('rsa', {
    modulusLength: MODULUS_BITS,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  });
}
