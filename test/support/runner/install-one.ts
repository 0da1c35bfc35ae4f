/** The installer's own step of a build: one dependency, without a lock file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Env } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { openPlace } from '../../../runner/builds/build-directory.ts';
import { openInstalled } from '../../../runner/builds/install/cache.ts';
import { install } from '../../../runner/builds/install/install.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { testLease, testRunner } from './lease.ts';

const log = openLog({ role: 'test', level: 'silent' });

export async function installOne(options: {
  dir: string;
  sandbox: 'auto' | 'bwrap' | 'landlock' | 'none';
  env: Env;
  signal: AbortSignal;
}): Promise<void> {
  const { dir, sandbox, env, signal } = options;
  const jail = await openJail({ sandbox, log });
  await using place = await openPlace(join(dir, 'builds'), jail);
  const manifest = '{"dependencies": {"left-pad": "1"}}';
  await writeFile(join(place.project, 'package.json'), manifest, { mode: 0o666 });
  const installed = await openInstalled({ dir: join(dir, 'kept'), now: Date.now, log });
  const lines = { line: () => undefined, flush: async () => undefined };
  const ids = { buildId: 'b', projectId: 'p', archiveBlobId: 'a' };
  const work = { ...ids, entrypoint: 'index.ts', timeoutMs: 120_000 };
  const hosts = { introspect: async () => ({ ok: true, manifests: [] }) as const };
  const deps = { runner: testRunner(), hosts, jail, installed, env };
  const step = { work, lease: testLease('lease-1'), deps, lines, signal, place };
  await install({ npm: false, pnpm: false, isDropped: false, ofJsr: [] }, step, async () => ({}));
}
