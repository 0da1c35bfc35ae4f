/**
 * Why a receiver refuses a request that a delivery sent: which secret made the signature, and if
 * none did, what is different from what was signed, as far as it can be known. Signatures are
 * compared in constant time. Pure.
 */
import { timingSafeEqual } from 'node:crypto';
import { macOf, VERSION } from './sign.ts';

/** In seconds. Source: the libraries of Standard Webhooks, which receivers use. */
export const TOLERANCE_S = 300;
/** Ours: a delivery has one signature for each valid secret, five at most. */
const SIGNATURES_MAX = 16;
const MAC_BYTES = 32;
const TIMESTAMP = /^\d{1,12}$/;
/** How an envelope begins (envelope.ts). */
const ENVELOPE_ID = /^\s*\{"id":"([0-9a-f-]{36})"/;

/** Headers as a receiver has them, and the body. */
export type Refused = { id: string; timestamp: string; signature: string; body: Buffer };
/** What core knows of the event with that id, if it was sent to the webhook. */
export type Known = { body: Uint8Array; signedAtS: readonly number[] };
export type Key = { key: Uint8Array };
type OtherKey = Key & { endpoint: string };

export type Finding = { code: string; message: string };

/** The header's signatures of this version; other text in it is skipped, as receivers do. */
function signaturesIn(header: string): Buffer[] {
  const parts = header.trim().split(/\s+/).slice(0, SIGNATURES_MAX);
  return parts.flatMap((part) => {
    const [version, text = ''] = part.split(',', 2);
    const mac = Buffer.from(text, 'base64');
    return version === VERSION && mac.length === MAC_BYTES ? [mac] : [];
  });
}

type Signed = { id: string; timestampS: number; body: Uint8Array };

/** The first key that made one of the signatures; all are compared. */
function signerOf<K extends Key>(
  signed: Signed,
  signatures: readonly Buffer[],
  keys: readonly K[],
): K | undefined {
  const fitting = keys.filter(({ key }) => {
    const mac = macOf(signed, key);
    return signatures.filter((one) => timingSafeEqual(one, mac)).length > 0;
  });
  return fitting[0];
}

/** What the request as it is shows: the key that signed it, or what keeps it from being read. */
export function checkSignature<K extends Key>(
  { id, timestamp, signature, body }: Refused,
  keys: readonly K[],
): { signer: K | undefined; problems: Finding[]; signatures: Buffer[] } {
  const signatures = signaturesIn(signature);
  const problems: Finding[] = [];
  if (signatures.length === 0) {
    const message = '`webhook-signature` has no signature of the form v1,<base64 of 32 bytes>.';
    problems.push({ code: 'SIGNATURE_FORMAT', message });
  }
  const time = timestamp.trim();
  if (!TIMESTAMP.test(time)) {
    const message = '`webhook-timestamp` is not a whole number of Unix seconds.';
    problems.push({ code: 'TIMESTAMP_FORMAT', message });
  }
  if (problems.length > 0) return { signer: undefined, problems, signatures };
  const signed = { id: id.trim(), timestampS: Number(time), body };
  return { signer: signerOf(signed, signatures, keys), problems, signatures };
}

/** Whether a receiver refuses the timestamp; undefined when it accepts it. */
export function checkTime(timestamp: string, nowS: number): Finding | undefined {
  const ageS = nowS - Number(timestamp.trim());
  if (Math.abs(ageS) <= TOLERANCE_S) return undefined;
  const limit = `receivers refuse more than ${TOLERANCE_S / 60} minutes`;
  if (ageS > 0) {
    const message = `The timestamp is ${ageText(ageS)} old: ${limit}.`;
    return { code: 'TIMESTAMP_OLD', message };
  }
  const message = `The timestamp is ${ageText(-ageS)} ahead of this service's clock: ${limit}.`;
  return { code: 'TIMESTAMP_AHEAD', message };
}

/**
 * Why no key of the webhook made the signature: one part of the request is replaced at a time,
 * until a key fits. `others`: the keys of the project's other webhooks.
 */
export function explain(
  refused: Refused,
  signatures: readonly Buffer[],
  by: { keys: readonly Key[]; known: Known | undefined; others: readonly OtherKey[] },
): Finding[] {
  const { keys, known, others } = by;
  const id = refused.id.trim();
  const { body } = refused;
  const timestampS = Number(refused.timestamp.trim());
  const fits = (change: Partial<Signed>) =>
    signerOf({ id, timestampS, body, ...change }, signatures, keys) !== undefined;

  const other = signerOf({ id, timestampS, body }, signatures, others);
  if (other !== undefined) {
    const message = `The secret of another webhook made the signature: ${other.endpoint}.`;
    return [{ code: 'OTHER_WEBHOOK', message }];
  }
  const trimmed = Buffer.from(body.toString().trim());
  if (trimmed.length < body.length && fits({ body: trimmed })) {
    const message = 'The body has spaces or line breaks around it that were not signed.';
    return [{ code: 'BODY_SPACES', message }];
  }
  const inside = ENVELOPE_ID.exec(body.toString('latin1'))?.[1];
  if (inside !== undefined && inside !== id && fits({ id: inside })) {
    const message = `\`webhook-id\` differs from the id that was signed, ${inside}.`;
    return [{ code: 'ID_DIFFERS', message }];
  }
  const signedAt = known?.signedAtS.find((time) => fits({ timestampS: time }));
  if (signedAt !== undefined) {
    const message = `\`webhook-timestamp\` differs from the one that was signed, ${signedAt}.`;
    return [{ code: 'TIMESTAMP_DIFFERS', message }];
  }
  const isSame = known !== undefined && body.equals(known.body);
  if (known !== undefined && !isSame && fits({ body: known.body })) {
    const where = differenceOf(known.body, body);
    const advice = 'Verify the raw bytes of the request, before parsing.';
    const message = `The body is not the one that was signed: ${where}. ${advice}`;
    return [{ code: 'BODY_DIFFERS', message }];
  }
  return unknownSigner(id, known, isSame ? undefined : body);
}

/** No key fits: what is known of the event. */
function unknownSigner(id: string, known: Known | undefined, body: Buffer | undefined): Finding[] {
  const causes = 'the secret was removed or is of another service, or the header was changed';
  const message = `No secret of this project made the signature: ${causes}.`;
  const signer = { code: 'SIGNATURE_UNKNOWN', message };
  if (known === undefined) {
    const unknown = `No event with the id ${id.slice(0, 64)} was sent to this webhook.`;
    return [signer, { code: 'EVENT_UNKNOWN', message: unknown }];
  }
  if (body === undefined) {
    const same = 'The body is the one of this event.';
    return [signer, { code: 'BODY_SAME', message: same }];
  }
  const differs = `The body is not the one of this event: ${differenceOf(known.body, body)}.`;
  return [signer, { code: 'BODY_DIFFERS', message: differs }];
}

function differenceOf(sent: Uint8Array, given: Buffer): string {
  const length = Math.min(sent.length, given.length);
  let at = 0;
  while (at < length && sent[at] === given[at]) at += 1;
  const sizes = `it has ${given.length} bytes, ${sent.length} were sent`;
  return `${sizes}, and byte ${at + 1} is the first that differs`;
}

/** `3 h 05 min`. */
function ageText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}
