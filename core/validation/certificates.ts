/**
 * Reads an upload of certificates: one to ten of authorities in PEM, or one in DER. Pure, but for
 * OpenSSL's parser: only the thread of validator.ts calls it.
 */
import { X509Certificate } from 'node:crypto';
import { certificateNames } from '../../proto/network/certificate-names.ts';

/** Source: extensions.proto. */
const COUNT_MAX = 10;
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** `problem`: the end of a sentence about the file. */
export type ReadCertificates = { pem: string } | { problem: string };

/** `pem`: of all certificates, one after another. */
export function readCertificates(content: Uint8Array, now: number): ReadCertificates {
  const parts = partsOf(Buffer.from(content));
  if ('problem' in parts) return parts;
  const read: string[] = [];
  for (const [index, part] of parts.blocks.entries()) {
    const name = parts.blocks.length === 1 ? 'The certificate' : `Certificate ${index + 1}`;
    const certificate = parsed(part);
    if (certificate === undefined) {
      return { problem: 'is no certificate in PEM or DER: it cannot be parsed.' };
    }
    const problem = problemOf(certificate, now);
    if (problem !== undefined) return { problem: `is not accepted. ${name} ${problem}` };
    read.push(certificate.toString().trim());
  }
  return { pem: `${read.join('\n')}\n` };
}

function partsOf(content: Buffer): { blocks: (Buffer | string)[] } | { problem: string } {
  const text = content.toString('latin1');
  if (text.includes('PRIVATE KEY-----')) {
    return { problem: 'must not contain a private key: upload the certificate alone.' };
  }
  if (!text.includes(BEGIN)) return { blocks: [content] };
  const blocks = text.split(BEGIN).slice(1);
  if (blocks.length > COUNT_MAX) {
    return { problem: `must have at most ${COUNT_MAX} certificates.` };
  }
  return { blocks: blocks.map((block) => `${BEGIN}${block.split(END, 1)[0]}${END}\n`) };
}

function parsed(part: Buffer | string): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(part);
    certificateNames(certificate.raw); // a runner reads them, too
    return certificate;
  } catch {
    return undefined; // the caller has the problem to report
  }
}

function problemOf({ ca, validTo }: X509Certificate, now: number): string | undefined {
  if (!ca) return 'is not of an authority (CA): upload the authority that has issued it.';
  const end = Date.parse(validTo);
  if (!(end > now)) return `expired on ${new Date(end).toISOString()}.`;
  return undefined;
}
