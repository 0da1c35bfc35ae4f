/**
 * Signatures of deliveries, as Standard Webhooks defines them (version 1, symmetric). Pure.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { createHmac, createSecretKey } from 'node:crypto';

const PREFIX = 'whsec_';
/** In bytes. Ours: as long as secrets of the published interface. */
export const SECRET_BYTES = 24;

/** A secret as the customer sees it. */
export function writeSecret(key: Uint8Array): string {
  return PREFIX + Buffer.from(key).toString('base64');
}

/**
 * What is signed: the event's id, the time of the attempt in Unix seconds, and the body byte for
 * byte.
 */
export type Signed = { id: string; timestampS: number; body: Uint8Array };

/**
 * The three headers of Standard Webhooks. `keys` are the live keys, newest first: during a rotation
 * a receiver may hold either, so the signature of each is sent, separated by a space.
 */
export function signatureHeaders(
  { id, timestampS, body }: Signed,
  keys: readonly Uint8Array[],
): Record<string, string> {
  const signatures = keys.map((key) => {
    // A key of its own: from bytes alone createHmac takes four times as long.
    const mac = createHmac('sha256', createSecretKey(key))
      .update(`${id}.${timestampS}.`)
      .update(body);
    return `v1,${mac.digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatures.join(' '),
  };
}
