/**
 * Signatures of deliveries, as Standard Webhooks defines them (version 1, symmetric). Pure.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { createHmac, createSecretKey } from 'node:crypto';

const PREFIX = 'whsec_';
/** Of signatures made with a shared secret. */
export const VERSION = 'v1';
const USER_AGENT = 'tabern-webhooks/1';
/** In bytes. Ours: as long as secrets of the published interface. */
export const SECRET_BYTES = 24;

/** A secret in the customer's format. */
export function writeSecret(key: Uint8Array): string {
  return PREFIX + Buffer.from(key).toString('base64');
}

/** The headers of an attempt that no secret makes. */
export function plainHeaders(attempt: number): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'x-svc-webhook-attempt': String(attempt),
  };
}

/** The event's id, the time of the attempt in Unix seconds, and the body byte for byte. */
export type Signed = { id: string; timestampS: number; body: Uint8Array };

/**
 * The three headers of Standard Webhooks. `keys` are the active keys, newest first: during a
 * rotation a receiver may have either, so the signatures of all are sent, separated by a space.
 */
export function signatureHeaders(
  signed: Signed,
  keys: readonly Uint8Array[],
): Record<string, string> {
  const signatures = keys.map((key) => `${VERSION},${macOf(signed, key).toString('base64')}`);
  return {
    'webhook-id': signed.id,
    'webhook-timestamp': String(signed.timestampS),
    'webhook-signature': signatures.join(' '),
  };
}

/** The bytes of a signature. */
export function macOf({ id, timestampS, body }: Signed, key: Uint8Array): Buffer {
  // A KeyObject: with bytes createHmac takes four times as long.
  const mac = createHmac('sha256', createSecretKey(key));
  return mac.update(`${id}.${timestampS}.`).update(body).digest();
}
