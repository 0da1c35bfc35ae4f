/**
 * `node test/bench/context.ts [runs]`: saving (pack, compress, encrypt) and restoring (verify,
 * decrypt, decompress, unpack) a realistic profile of 60 MB, and `tar
 *  zstd` of the same directory in the same run. Read the ratios: the times depend on the machine
 * and its load. The aim is 1.5 at most.
 */
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readHead, unwrapKeys } from '../../proto/archives/context-format.ts';
import { sealProfile } from '../../proto/archives/context-writer.ts';
import { packProfile, unpackProfile } from '../../runner/browser/profile/profile.ts';
import { tempDirectory } from '../support/temp.ts';

const RUNS = Number(process.argv[2] ?? 9);
const MIB = 1 << 20;
const PAIR = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

{
  await using dir = tempDirectory('tabern-bench-');
  const from = join(dir.path, 'profile');
  makeProfile(from);
  const plain = join(dir.path, 'plain.tar.zst');
  const sealed = join(dir.path, 'sealed');
  const to = join(dir.path, 'to');
  const shell = (command: string) => execFileSync('sh', ['-c', command]);
  const took = { save: [], tar: [], restore: [], untar: [] } as Record<string, number[]>;
  for (let run = 0; run <= RUNS; run++) {
    const now: Record<string, () => unknown> = {
      save: () => sealProfile(packProfile(from), PAIR.publicKey, sealed),
      tar: () => shell(`tar -C '${from}' -c . | zstd -q -f -o '${plain}'`),
      restore: async () => {
        const keys = unwrapKeys(await readHead(sealed), PAIR.privateKey);
        await unpackProfile({ path: sealed, keys }, to);
      },
      untar: () => {
        mkdirSync(to);
        shell(`zstd -q -d -c '${plain}' | tar -C '${to}' -x`);
      },
    };
    for (const [name, act] of Object.entries(now)) {
      if (name === 'save') rmSync(sealed, { force: true });
      rmSync(to, { recursive: true, force: true });
      const before = performance.now();
      await act();
      if (run > 0) took[name]?.push(performance.now() - before); // the first run warms the caches
    }
  }
  const middle = (name: string) => (took[name] ?? []).sort((a, b) => a - b)[RUNS >> 1] ?? 0;
  const show = (name: string, other: string) => {
    const ratio = (middle(name) / middle(other)).toFixed(2);
    console.log(`${name} ${middle(name).toFixed(0)} ms, ${other} ${middle(other).toFixed(0)} ms`);
    console.log(`${name} / ${other}: ${ratio}`);
  };
  console.log(`${RUNS} runs; ${statSync(sealed).size} bytes sealed, ${statSync(plain).size} plain`);
  show('save', 'tar');
  show('restore', 'untar');
}

/**
 * Some 60 MB in 900 files, none of which is a cache, so that both sides pack the same: databases
 * that compress 5 to 1, logs of LevelDB, scripts of service workers, blobs that do not compress.
 */
function makeProfile(root: string): void {
  const write = (path: string, bytes: Buffer) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), bytes);
  };
  write('Local State', text(60_000, 'state'));
  for (const name of ['History', 'Cookies', 'Web Data', 'Favicons', 'Login Data']) {
    write(`Default/${name}`, text(4 * MIB, name));
  }
  for (let site = 0; site < 60; site++) {
    const dir = `Default/IndexedDB/https_site-${site}.example_0.indexeddb`;
    for (let file = 0; file < 10; file++) {
      write(`${dir}.leveldb/${String(file).padStart(6, '0')}.ldb`, text(30_000, `${site}.${file}`));
    }
    write(`${dir}.blob/1/00/${site}`, randomBytes(100_000));
    for (let file = 0; file < 4; file++) {
      write(`Default/Service Worker/CacheStorage/${site}/${file}`, text(60_000, `${file}/${site}`));
    }
  }
}

/** Records as in databases: repeated words, and numbers that differ. */
function text(bytes: number, seed: string): Buffer {
  const parts: string[] = [];
  for (let at = 0, size = 0; size < bytes; at++) {
    const hash = createHash('sha256').update(`${seed}${at}`).digest('base64');
    const part = `{"id":${at},"url":"https://www.site.example/path/${hash}","visits":${at % 7}}\n`;
    parts.push(part);
    size += part.length;
  }
  return Buffer.from(parts.join('')).subarray(0, bytes);
}
