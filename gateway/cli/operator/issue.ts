/**
 * X.509 certificates of a private authority: keys by node:crypto (P-256), certificates by
 * @peculiar/x509. A role's certificate is valid for servers and for clients. Writes no file.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const KEYS = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNED = { name: 'ECDSA', hash: 'SHA-256' } as const;
/** Validity begins this long before now, for clocks that differ. Ours. */
const EARLIER_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Ours: ten years, since all roles must receive a new one. */
const AUTHORITY_DAYS = 3_650;

/** In PEM. */
export type Pair = { cert: string; key: string };

export type Wanted = {
  /** DNS names and addresses; the first is the subject. */
  names: readonly [string, ...string[]];
  days: number;
  /** Unix ms. */
  at: number;
};

export async function newAuthority(at: number): Promise<Pair> {
  const key = newKey();
  const keys = await webKeys(key);
  const cert = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=tabern authority',
    keys,
    signingAlgorithm: SIGNED,
    notBefore: new Date(at - EARLIER_MS),
    notAfter: new Date(at + AUTHORITY_DAYS * DAY_MS),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: cert.toString('pem'), key };
}

/** A new certificate of the authority, for `key` or a new key; it ends with the authority's. */
export async function issue(authority: Pair, wanted: Wanted, key = newKey()): Promise<Pair> {
  const { names, days, at } = wanted;
  const issuer = new X509Certificate(authority.cert);
  const { publicKey } = await webKeys(key);
  const cert = await X509CertificateGenerator.create({
    subject: [{ CN: [names[0]] }],
    issuer: issuer.subject,
    publicKey,
    signingKey: (await webKeys(authority.key)).privateKey,
    signingAlgorithm: SIGNED,
    notBefore: new Date(at - EARLIER_MS),
    notAfter: new Date(Math.min(at + days * DAY_MS, issuer.notAfter.getTime())),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
      ),
      await SubjectKeyIdentifierExtension.create(publicKey),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { cert: cert.toString('pem'), key };
}

/** Names of a certificate in PEM, as in Wanted, and its validity. */
export function namesIn(pem: string): { names: string[]; notBefore: Date; notAfter: Date } {
  const cert = new X509Certificate(pem);
  const found = cert.getExtension(SubjectAlternativeNameExtension);
  const { notBefore, notAfter } = cert;
  return { names: found?.names.items.map(({ value }) => value) ?? [], notBefore, notAfter };
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: KEYS.namedCurve });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

async function webKeys(pem: string) {
  const privateKey = createPrivateKey(pem);
  const publicKey = createPublicKey(privateKey);
  const asWebKey = (key: KeyObject, use: 'sign' | 'verify') => key.toCryptoKey(KEYS, true, [use]);
  return { privateKey: asWebKey(privateKey, 'sign'), publicKey: asWebKey(publicKey, 'verify') };
}
