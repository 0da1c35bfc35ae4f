/**
 * Certificates for receivers: a separate authority, and leaves that match their server or do not.
 */
import { generate } from 'selfsigned';

export type Certificate = { key: string; cert: string };
type Leaf = { isExpired?: boolean; names?: readonly string[] };
type Names = { type: 2; value: string }[];

const DAY_MS = 86_400_000;
const KEYS = { keyType: 'ec', algorithm: 'sha256' } as const;

/** Names of a receiver besides its address; none of them exists in DNS. */
export const RECEIVER_NAMES = ['localhost', 'hook.example.com', 'other.example.com'];

/** An authority: clients trust `cert`; `issue` creates the certificate of a server. */
export async function authority() {
  const ca = await generate([{ name: 'commonName', value: `authority ${crypto.randomUUID()}` }], {
    ...KEYS,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  /** For 127.0.0.1 and RECEIVER_NAMES by default. */
  async function issue({ isExpired = false, names }: Leaf = {}): Promise<Certificate> {
    const now = Date.now();
    const leaf = await generate([{ name: 'commonName', value: 'a receiver' }], {
      ...KEYS,
      ca: { key: ca.private, cert: ca.cert },
      notBeforeDate: new Date(now - 2 * DAY_MS),
      notAfterDate: new Date(isExpired ? now - DAY_MS : now + DAY_MS),
      extensions: leafExtensions(names),
    });
    return { key: leaf.private, cert: leaf.cert };
  }
  return { cert: ca.cert, issue };
}

/** Self-signed. */
export async function selfSigned(): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: '127.0.0.1' }], {
    ...KEYS,
    extensions: leafExtensions(undefined),
  });
  return { key: made.private, cert: made.cert };
}

function leafExtensions(names: readonly string[] | undefined) {
  const altNames: Names = (names ?? RECEIVER_NAMES).map((value) => ({ type: 2, value }));
  const address = { type: 7 as const, ip: '127.0.0.1' };
  return [
    { name: 'basicConstraints' as const, cA: false },
    { name: 'keyUsage' as const, digitalSignature: true, critical: true },
    { name: 'extKeyUsage' as const, serverAuth: true },
    {
      name: 'subjectAltName' as const,
      altNames: names === undefined ? [address, ...altNames] : altNames,
    },
  ];
}
