/**
 * `tabern certs`: a private certificate authority, and pairs for roles on several machines. A
 * directory for each: <dir>/ca has the authority's key, which no role needs, <dir>/<name> what one
 * role gets: tls.crt, tls.key and ca.crt. Keys are readable by their owner only; nothing that
 * exists is overwritten, but by `renew`, which keeps the key.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import {
  createFile,
  makeDirectory,
  replaceFile,
  syncDirectory,
} from '../../../proto/common/durable.ts';
import { columns } from '../../../proto/common/text-table.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { issue, namesIn, newAuthority, type Pair } from './issue.ts';
import { answer, note, print } from './terminal.ts';

const AUTHORITY = 'ca';
/** A DNS name of one or more labels; also the name of a directory. */
const NAME = /^(?=.{1,200}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
/** A DNS name, where `*` may be the first label; verifiers refuse one before a single label. */
const DNS_NAME = /^(?=.{1,253}$)(\*\.(?=[^.]+\.))?\w([\w-]*\w)?(\.\w([\w-]*\w)?)*$/;
/** A last label of digits: an address with a wrong number, such as 10.0.0.256. */
const ADDRESS_LIKE = /(^|\.)\d+$/;
/** Names of one certificate. Ours. */
const HOSTS_MAX = 100;
const DAYS_MAX = 3_650;

export async function createCert(name: string, given: Given): Promise<number> {
  const dir = directoryOf(given);
  if (name === AUTHORITY || !NAME.test(name)) {
    throw new Exit(EXIT.config, 'the name must be lower-case letters, digits, - and ., and not ca');
  }
  const path = join(dir, name);
  if (existsSync(path)) {
    throw new Exit(EXIT.failed, `${path} exists: \`tabern certs renew ${name}\` renews it`);
  }
  const hosts = hostsOf(given);
  const authority = await authorityIn(dir);
  const wanted = { names: [name, ...hosts] as const, days: daysOf(given), at: Date.now() };
  const pair = await issue(authority, wanted);
  putDirectory(path, { 'tls.crt': pair.cert, 'tls.key': pair.key, 'ca.crt': authority.cert });
  return answer(given, shown(path, pair.cert), () => {
    print(path);
    note(`copy it to the machine of ${name}; keep ${join(dir, AUTHORITY)} on none of them`);
  });
}

/** Keeps the key and the names, so that one file changes, at once. */
export async function renewCert(name: string, given: Given): Promise<number> {
  const dir = directoryOf(given);
  const path = join(dir, name);
  const [old, key] = [readIn(path, 'tls.crt'), readIn(path, 'tls.key')];
  const authority = readAuthority(join(dir, AUTHORITY));
  const {
    names: [first = name, ...others],
  } = namesIn(old);
  const wanted = { names: [first, ...others] as const, days: daysOf(given), at: Date.now() };
  const { cert } = await issue(authority, wanted, key);
  replaceFile(join(path, 'tls.crt'), cert);
  return answer(given, shown(path, cert), () => {
    print(path);
    note('copy tls.crt to its machine, then send core, gateways and runners SIGHUP');
  });
}

export async function listCerts(_: string, given: Given): Promise<number> {
  const dir = directoryOf(given);
  const isPair = (name: string) => existsSync(join(dir, name, 'tls.crt'));
  const found = (existsSync(dir) ? readdirSync(dir) : []).filter(isPair).sort();
  const all = found.map((name) => shown(join(dir, name), readIn(join(dir, name), 'tls.crt')));
  return answer(given, all, () => {
    const rows = all.map(({ path, names, validUntil }) => [path, names.join(','), validUntil]);
    print(columns(['DIRECTORY', 'NAMES', 'VALID UNTIL'], rows));
  });
}

function shown(path: string, cert: string) {
  const { names, notAfter } = namesIn(cert);
  return { path, names, validUntil: notAfter.toISOString() };
}

/** Creates it at the first use. */
async function authorityIn(dir: string): Promise<Pair> {
  const path = join(dir, AUTHORITY);
  if (!existsSync(path)) {
    const { cert, key } = await newAuthority(Date.now());
    putDirectory(path, { 'ca.crt': cert, 'ca.key': key });
    note(`created an authority: ${path}`);
  }
  return readAuthority(path);
}

/** Every certificate of an authority that is not valid now is refused. */
function readAuthority(path: string): Pair {
  const authority = { cert: readIn(path, 'ca.crt'), key: readIn(path, 'ca.key') };
  const { notBefore, notAfter } = namesIn(authority.cert);
  const now = Date.now();
  if (notAfter.getTime() <= now) {
    throw new Exit(
      EXIT.failed,
      `the authority in ${path} was valid until ${notAfter.toISOString()}: move the directory ` +
        'away, create a certificate for each role anew, and copy them to all machines',
    );
  }
  if (notBefore.getTime() <= now) return authority;
  const from = notBefore.toISOString();
  throw new Exit(EXIT.failed, `the authority in ${path} is valid from ${from}: check the clock`);
}

/** Complete or absent: the directory gets its name when its files are written. */
function putDirectory(path: string, files: Readonly<Record<string, string>>): void {
  const aside = `${path}.${randomUUID()}.new`;
  makeDirectory(aside);
  for (const [name, text] of Object.entries(files)) createFile(join(aside, name), text);
  renameSync(aside, path);
  syncDirectory(join(path, '..'));
}

function readIn(path: string, name: string): string {
  try {
    return readFileSync(join(path, name), 'utf8');
  } catch (cause) {
    throw new Exit(EXIT.failed, `cannot read ${join(path, name)}: check --dir and the name`, cause);
  }
}

function directoryOf({ dir }: Given): string {
  return resolve(typeof dir === 'string' ? dir : 'tabern_certs');
}

function hostsOf({ host = '' }: Given): string[] {
  const hosts = String(host)
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  const isHost = (one: string) =>
    isIP(one) !== 0 || (DNS_NAME.test(one) && !ADDRESS_LIKE.test(one));
  if (hosts.length <= HOSTS_MAX && hosts.every(isHost)) return hosts;
  throw new Exit(
    EXIT.config,
    `--host must be up to ${HOSTS_MAX} names and addresses without ports, comma-separated; ` +
      '* needs two labels after it, such as *.runners.internal',
  );
}

function daysOf({ days = '365' }: Given): number {
  const count = Number(days);
  if (Number.isInteger(count) && count >= 1 && count <= DAYS_MAX) return count;
  throw new Exit(EXIT.config, `--days must be a whole number from 1 to ${DAYS_MAX}`);
}
