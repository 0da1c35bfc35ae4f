/**
 * The names in a certificate, as they are written in it. Pure; reads each byte of a header once. It
 * throws for what is no DER, such as BER with a length that is not written: OpenSSL accepts that.
 */
/** Tag of the version in a certificate, which those of version 1 do not have. */
const VERSION = 0xa0;
/** Instead of a length, in BER alone. */
const UNTIL_ITS_END = 0x80;

export type CertificateNames = { issuer: Buffer; serial: Buffer; subject: Buffer };

/** Elements of the certificate, in DER. Source: RFC 5280 4.1. */
export function certificateNames(der: Buffer): CertificateNames {
  const [part = Buffer.alloc(0)] = childrenOf(der);
  const signed = childrenOf(part);
  const [serial, , issuer, , subject] = signed[0]?.[0] === VERSION ? signed.slice(1) : signed;
  if (!serial || !issuer || !subject) throw new RangeError('an element is missing');
  return { issuer, serial, subject };
}

function childrenOf(element: Buffer): Buffer[] {
  const { start, end } = contentOf(element, 0);
  const children: Buffer[] = [];
  let at = start;
  while (at < end) {
    const next = contentOf(element, at).end;
    children.push(element.subarray(at, next));
    at = next;
  }
  return children;
}

/** Of the element at this index. Throws RangeError where the bytes end. */
function contentOf(bytes: Buffer, at: number): { start: number; end: number } {
  const first = bytes.readUInt8(at + 1);
  if (first === UNTIL_ITS_END) throw new RangeError('an element has no length');
  const lengthBytes = first < UNTIL_ITS_END ? 0 : first & 0x7f;
  const start = at + 2 + lengthBytes;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes);
  if (start + length > bytes.length) throw new RangeError('an element is not whole');
  return { start, end: start + length };
}
