/**
 * Signatures of deliveries, as Standard Webhooks defines them (version 1, symmetric). Pure.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { createHmac, createSecretKey } from 'node:crypto';

const PREFIX = 'whsec_';
/** In bytes. Ours: as long as secrets of the published interface. */
export const SECRET_BYTES = 24;

/** A secret in the customer's format. */
export function writeSecret(key: Uint8Array): string {
  return PREFIX + Buffer.from(key).toString('base64');
}

/** The event's id, the time of the attempt in Unix seconds, and the body byte for byte. */
type Signed = { id: string; timestampS: number; body: Uint8Array };

/**
 * The three headers of Standard Webhooks. `keys` are the active keys, newest first: during a
 * rotation a receiver may have either, so the signatures of all are sent, separated by a space.
 */
export function signatureHeaders(
  { id, timestampS, body }: Signed,
  keys: readonly Uint8Array[],
): Record<string, string> {
  const signatures = keys.map((key) => {
    // A KeyObject: with bytes createHmac takes four times as long.
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
