/** The type of an attack through a build, and the parts of its projects. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { create, Header, Pax } from 'tar';
import { directory } from '../../../support/runner/project.ts';
import type { Attack } from './attack.ts';

/** In every file that a program has changed. */
export const RAN = 'PROGRAM-RAN';

export type BuildAim = {
  /** A file that only the service's user may read. */
  canary: string;
  /** Of a server with the repository one.git, when it is wanted. */
  url: string;
};

export type BuildAttack = Attack & {
  files(aim: BuildAim): Record<string, string>;
  /** Adds binary files. */
  prepare?(dir: string, aim: BuildAim): Promise<void>;
  /** Instead of the packed files. */
  archive?(): Buffer;
  /** What lies where the runner has its own directory. */
  beside?: Record<string, string>;
  hasRepository?: true;
};

export const BUILT: Attack['ending'] = { type: 'built' };
export const unbuilt = (why: RegExp): Attack['ending'] => ({ type: 'unbuilt', why });

/** The files whose change proves that a program ran; HOME is beside the project's directory. */
const EVIDENCE = `globalThis.evidence = '${RAN}';`;
export const EVIL = `#!/bin/sh
echo "${EVIDENCE}" > "$HOME/../project/evidence.js"
echo ${RAN} >&2
exit 1
`;
/** As settings of npm name it. */
export const EVIL_PATH = ['$', '{HOME}/../project/evil.sh'].join('');
export const EVIL_JS = `require('node:fs').writeFileSync(
  process.env.HOME + '/../project/evidence.js', ${JSON.stringify(EVIDENCE)});
module.exports = { hooks: { readPackage: (one) => one } };`;

export function mapOf(map: object): string {
  const data = Buffer.from(JSON.stringify(map)).toString('base64');
  return `\n//# sourceMappingURL=data:application/json;base64,${data}`;
}

type Packed = { manifest?: object; files?: Record<string, string>; isLocked?: boolean };

/** packed.tgz of the project, a package. */
export async function packed(dir: string, { manifest, files, isLocked }: Packed): Promise<void> {
  await using made = directory({
    'package/package.json': JSON.stringify({ name: 'packed', version: '1.0.0', ...manifest }),
    'package/index.js': '',
    ...Object.fromEntries(
      Object.entries(files ?? {}).map(([name, text]) => [`package/${name}`, text]),
    ),
  });
  const file = join(dir, 'packed.tgz');
  await create({ gzip: true, cwd: made.path, file, portable: true }, ['package']);
  if (isLocked !== true) return;
  const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
  const lock = join(dir, 'pnpm-lock.yaml');
  writeFileSync(lock, readFileSync(lock, 'utf8').replace('INTEGRITY', integrity));
}

/** One entry with that path, in a header of its own. */
export function deepArchive(path: string): Buffer {
  const pax = new Pax({ path: `${path}x`, size: 1 }).encode();
  const header = new Header({ path: 'x', type: 'File', size: 1, mode: 0o644 });
  header.encode();
  const body = Buffer.alloc(512, 0);
  body.write('x');
  return gzipSync(Buffer.concat([pax, header.block ?? Buffer.alloc(0), body, Buffer.alloc(1024)]));
}
