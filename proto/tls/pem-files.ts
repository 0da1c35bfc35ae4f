/**
 * PEM files of certificates and keys that settings name. They are read again after a renewal, so a
 * problem names the setting and the path.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { ConfigError, type Env, text } from '../common/env.ts';
import { settingError, sourceOf } from '../common/settings/sources.ts';

/** OpenSSL reads these three. */
const BEGIN = /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/m;

/** `source` is the flag, variable or line of the settings file that names the file. */
export type PemFile = { path: string; source: string };
/** The certificate with its chain, and its key. */
export type TlsFiles = { cert: PemFile; key: PemFile };

/** The file that a variable names; undefined when it is not set. */
export function pemFile(env: Env, variable: string): PemFile | undefined {
  const path = text(env, variable);
  return path === undefined ? undefined : { path, source: labelOf(env, variable) };
}

/** Both variables must be set, or neither. Throws a ConfigError that names the missing one. */
export function pairFiles(env: Env, ofCert: string, ofKey: string): TlsFiles | undefined {
  const [cert, key] = [pemFile(env, ofCert), pemFile(env, ofKey)];
  if (cert !== undefined && key !== undefined) return { cert, key };
  if (cert === undefined && key === undefined) return undefined;
  const [given, missing] = cert ? [ofCert, ofKey] : [ofKey, ofCert];
  throw settingError(env, given, { problem: `goes together with ${missing}: set both` });
}

/** The pair is verified before it is used. Throws a ConfigError. */
export function readPair({ cert, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  const pair = { cert: readPem(cert), key: readPem(key) };
  try {
    createSecureContext(pair);
  } catch (cause) {
    const { message } = cause as Error;
    throw new ConfigError(`${cert.source} and ${key.source}: ${message}`, { cause });
  }
  return pair;
}

/** Certificates of authorities: each of the file is verified. Throws a ConfigError. */
export function readAuthorities(file: PemFile): Buffer {
  const pem = readPem(file);
  const [, ...certificates] = pem.toString('latin1').split(BEGIN);
  if (certificates.length === 0) certificateIn(file, Buffer.alloc(0));
  for (const [index, rest] of certificates.entries()) {
    const which = certificates.length === 1 ? '' : ` (certificate ${index + 1})`;
    certificateIn(file, Buffer.from(`-----BEGIN CERTIFICATE-----${rest}`), which);
  }
  return pem;
}

/** The first certificate of the file. Throws a ConfigError. */
export function readCertificate(file: PemFile): X509Certificate {
  return certificateIn(file, readPem(file));
}

function certificateIn({ path, source }: PemFile, pem: Buffer, which = ''): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new ConfigError(`${source}: ${path} has no certificate in PEM${which}`, { cause });
  }
}

function readPem({ path, source }: PemFile): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigError(`${source}: cannot read ${path}`, { cause });
  }
}

function labelOf(env: Env, variable: string): string {
  return sourceOf(env, variable)?.label ?? variable;
}
