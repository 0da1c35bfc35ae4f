/**
 * Certificates of authorities that one browser trusts besides the public ones, for TLS servers
 * only. Chromium and the headless shell read them at their start from a database in HOME: cert9.db
 * of NSS, with an object of PKCS #11 in each row and an attribute of it in each column.
 */
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { certificateNames } from '../../proto/network/certificate-names.ts';

/** Chromium prefers it to the directory of the XDG specification when it exists. */
const DIRECTORY = '.pki/nssdb';
/**
 * a0 to a102 are CKA_CLASS, TOKEN, PRIVATE, LABEL, VALUE, CERTIFICATE_TYPE, ISSUER, SERIAL_NUMBER,
 * SUBJECT and ID of PKCS #11. The others are NSS': CKA_TRUST_SERVER_AUTH, CKA_CERT_SHA1_HASH and
 * CKA_CERT_MD5_HASH. NSS adds columns that it lacks.
 */
const TABLE = `CREATE TABLE nssPublic (id PRIMARY KEY UNIQUE ON CONFLICT ABORT, a0, a1, a2, a3, a11,
  a80, a81, a82, a101, a102, ace536358, ace5363b4, ace5363b5)`;
/** CKO_CERTIFICATE, of the type X.509. */
const CERTIFICATE = `INSERT INTO nssPublic (id, a0, a1, a2, a3, a11, a80, a81, a82, a101, a102)
  VALUES (:id, x'00000001', x'01', x'00', :label, :der, x'00000000', :issuer, :serial, :subject,
    :sha1)`;
/** CKO_NSS_TRUST: CKT_NSS_TRUSTED_DELEGATOR for the certificate of that hash. */
const TRUST = `INSERT INTO nssPublic (id, a0, a1, a2, a81, a82, ace536358, ace5363b4, ace5363b5)
  VALUES (:id, x'ce534353', x'01', x'00', :issuer, :serial, x'ce534352', :sha1, :md5)`;

/** `certificates`: in DER; `home`: of the browser. Throws when one is not a certificate. */
export async function writeCertificates(
  certificates: readonly Uint8Array[],
  home: string,
): Promise<void> {
  if (certificates.length === 0) return;
  const dir = join(home, DIRECTORY);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  // of keys, which NSS fills: one that it created would get a mode, which Landlock's filter refuses
  await writeFile(join(dir, 'key4.db'), '', { mode: 0o600 });
  using database = new DatabaseSync(join(dir, 'cert9.db'));
  // it ends with its browser
  database.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; ${TABLE}`);
  const certificate = database.prepare(CERTIFICATE);
  const trust = database.prepare(TRUST);
  const texts = certificates.map((der) => Buffer.from(der).toString('base64'));
  for (const [index, text] of [...new Set(texts)].entries()) {
    const der = Buffer.from(text, 'base64');
    const { issuer, serial, subject } = certificateNames(der);
    const [sha1, md5] = [hashOf('sha1', der), hashOf('md5', der)];
    const label = Buffer.from(`authority ${index + 1}`);
    certificate.run({ id: 2 * index + 1, label, der, issuer, serial, subject, sha1 });
    trust.run({ id: 2 * index + 2, issuer, serial, sha1, md5 });
  }
}

function hashOf(algorithm: 'sha1' | 'md5', der: Buffer): Buffer {
  return createHash(algorithm).update(der).digest();
}
