/**
 * The types of settings: each reads the text of a value. It refuses an invalid text with the end of
 * a sentence, such as `must be a whole number`; the reader prepends the source of the value.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { hostIn } from '../../network/loopback.ts';
import { cidrList } from '../../network/public-addresses.ts';
import { upstreamOf } from '../../network/session-proxies.ts';
import { TOKEN_MIN } from '../durable.ts';
import type { Place } from '../env.ts';
import { RUNNER_LABEL_MAX_CHARS, RUNNER_LABELS_MAX } from '../limits.ts';

/** The reader of a setting: a role of the service, or the commands that call or operate it. */
export type Role = 'core' | 'gateway' | 'runner' | 'tools';

/** A setting; its name is that of its variable, without `TABERN_`. */
export type Row = Unnamed & { name: string };

export type Unnamed = {
  /** As text; absent: none, or found at run time. */
  default?: string;
  description: string;
  roles: readonly Role[];
  /** Never a flag, because other users of the machine can read those, and never printed. */
  isSecret?: true;
} & Typed;

type Typed =
  | { type: 'integer' /** The least and the most. */; range: readonly [number, number] }
  | { type: 'choice' /** The words that it may be. */; range: readonly string[] }
  | { type: keyof typeof READERS };

/** In characters: long enough against guesses and brute force. */
const API_KEY_MIN = 24;

const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9-]{1,61}[a-z0-9])((?:\/[\w-]{1,64}){0,4})\/?$/;
const WORD = `[\\w./-]{1,${RUNNER_LABEL_MAX_CHARS}}`;
const LABEL = new RegExp(`^(${WORD})=(${WORD})$`);

const READERS = {
  text: (text: string) => text,
  path: (text: string) => resolve(text),
  file: fileText,
  url: baseUrl,
  database: databaseUrl,
  listen: place,
  reachable,
  core: coreAddress,
  key: apiKey,
  token: roleToken,
  name: dnsName,
  networks,
  list: listOf,
  labels: labelsOf,
  proxy,
  bucket,
};

/** The type of a setting's value. */
export type ValueOf<R extends Row> = R extends { type: 'integer' }
  ? number
  : R extends { type: 'choice'; range: readonly (infer Word)[] }
    ? Word
    : R extends { type: keyof typeof READERS }
      ? ReturnType<(typeof READERS)[R['type']]>
      : never;

/** Throws a TypeError: the end of a sentence. */
export function parsed(row: Row, text: string): unknown {
  switch (row.type) {
    case 'integer':
      return integer(text, row.range);
    case 'choice':
      if (row.range.includes(text)) return text;
      throw new TypeError(`must be one of ${row.range.join(', ')}`);
    default:
      return READERS[row.type](text);
  }
}

/** The description, with the valid values if the type defines them. */
export function described({ description, ...row }: Row): string {
  switch (row.type) {
    case 'integer':
      return `${description} (${row.range.join(' to ')})`;
    case 'choice':
      return `${description} (${row.range.join(', ')})`;
    default:
      return description;
  }
}

/** `WEBHOOK_CA` -> `webhookCa`, as in the settings file and in code. */
export function memberOf<N extends string>(name: N): Member<N> {
  const [first = '', ...words] = name.toLowerCase().split('_');
  const member = first + words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('');
  return member as Member<N>; // the same rule as a type
}

export type Member<N extends string> = N extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Words<Rest>}`
  : Lowercase<N>;

type Words<N extends string> = N extends `${infer First}_${infer Rest}`
  ? `${Capitalize<Lowercase<First>>}${Words<Rest>}`
  : Capitalize<Lowercase<N>>;

function integer(text: string, [min, max]: readonly [number, number]): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= min && number <= max) return number;
  throw new TypeError(`must be a whole number from ${min} to ${max}`);
}

/** The content of the file. */
function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new TypeError(`names ${path}, which cannot be read`, { cause });
  }
}

/** Without a slash at its end. */
function baseUrl(text: string): string {
  const url = URL.parse(text);
  const isBase = url && /^https?:$/.test(url.protocol) && !url.search && !url.hash;
  if (!isBase) throw new TypeError('must be an http or https address');
  return url.href.replace(/\/+$/, '');
}

/** As libpq reads them; they name files. */
const DATABASE_FILES = ['sslrootcert', 'sslcert', 'sslkey', 'sslcrl'];

/** Of PostgreSQL, with the name of a database. */
function databaseUrl(text: string): string {
  const url = URL.parse(text);
  const isDatabase = url && /^postgres(ql)?:$/.test(url.protocol) && url.pathname.length > 1;
  if (!isDatabase) throw new TypeError('must look like postgres://user:password@host:5432/name');
  const file = DATABASE_FILES.find((name) => url.searchParams.has(name));
  if (file !== undefined) {
    throw new TypeError(`must not have ${file}: authorities are set by TABERN_DATABASE_CA_FILE`);
  }
  return text;
}

/** `host:port`, or a port of this machine's loopback. Port 0 is any. */
function place(text: string): Place {
  const [, host = '127.0.0.1', port] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw new TypeError('must be host:port, such as 127.0.0.1:9464');
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

/** Other machines connect to exactly this address: no wildcard address, and no port 0. */
function reachable(text: string): Place {
  const url = URL.parse(`tcp://${text}`);
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  const isAnywhere = host === '' || host === '0.0.0.0' || host === '::';
  if (!url || isAnywhere || !Number(url.port) || text !== `${url.hostname}:${url.port}`) {
    throw new TypeError('must be host:port, as gateways reach this machine');
  }
  return { host, port: Number(url.port) };
}

/** For grpc-js. */
function coreAddress(text: string): string {
  const isSocket = /^unix:./.test(text);
  if (isSocket || hostIn(text) !== '') return text;
  throw new TypeError('must be host:port, or unix:<path>');
}

/** As in a certificate. */
function dnsName(text: string): string {
  const label = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
  if (text.length <= 128 && new RegExp(`^${label}(\\.${label})*$`).test(text)) return text;
  throw new TypeError('must be lower-case letters, digits, - and ., 128 characters at most');
}

/** A file of core has 43 characters. */
function roleToken(text: string): string {
  if (text.length >= TOKEN_MIN && /^[\x21-\x7e]+$/.test(text)) return text;
  throw new TypeError(`must have at least ${TOKEN_MIN} printable ASCII characters, without spaces`);
}

function apiKey(text: string): string {
  if (text.length < API_KEY_MIN) {
    throw new TypeError(`must have at least ${API_KEY_MIN} characters`);
  }
  // It is sent in a header, which allows no other characters.
  if (!/^[\x21-\x7e]+$/.test(text)) throw new TypeError('must be printable ASCII without spaces');
  return text;
}

function networks(text: string): string[] {
  const blocks = listOf(text);
  try {
    cidrList(blocks);
  } catch (cause) {
    throw new TypeError(`must be blocks such as 10.0.0.0/8: ${(cause as Error).message}`, {
      cause,
    });
  }
  return blocks;
}

/** Comma-separated, trimmed, without empty members. */
function listOf(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** `name=value` members. */
function labelsOf(text: string): { name: string; value: string }[] {
  const members = listOf(text);
  const labels = members.flatMap((one) => {
    const [, name, value] = LABEL.exec(one) ?? [];
    return name === undefined || value === undefined ? [] : { name, value };
  });
  const isWhole = labels.length === members.length;
  const isUnique = new Set(labels.map(({ name }) => name)).size === labels.length;
  if (isWhole && isUnique && labels.length <= RUNNER_LABELS_MAX) return labels;
  throw new TypeError(
    `must be up to ${RUNNER_LABELS_MAX} labels such as region=eu, each name once, of letters, ` +
      `digits, and . _ / -, with up to ${RUNNER_LABEL_MAX_CHARS} characters`,
  );
}

/** The operator's proxy, for sessions that request a managed one. */
function proxy(text: string) {
  return upstreamOf(text, { isManaged: true });
}

/** Names of buckets have no dots here: they would need a certificate of their own. */
function bucket(text: string): { bucket: string; prefix: string } {
  const [, name, path = ''] = BUCKET.exec(text) ?? [];
  if (name === undefined) {
    throw new TypeError('must be s3://bucket or s3://bucket/prefix, of a-z, 0-9, - and _');
  }
  return { bucket: name, prefix: path === '' ? '' : `${path.slice(1)}/` };
}
