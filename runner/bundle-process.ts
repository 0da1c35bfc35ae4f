/**
 * Bundles in a process of its own. esbuild lives on inside whoever uses it, and sources can be made
 * that crash it or fill its memory: every later build would fail with it. Here one build does. It
 * runs nothing of the project, so limits are enough: memory, and an end with the signal or the
 * runner.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Log } from '../proto/log.ts';
import { moduleCacheEnv } from '../proto/module-cache.ts';
import type { Bundle, BundleOptions } from './bundle.ts';
import { BundleError } from './bundle-error.ts';
import { keepTail } from './flow.ts';
import { openNone } from './jail/none.ts';

/** What bundler.ts says. */
export type Said = { made: Bundle } | { refused: string };

const PROGRAM = fileURLToPath(new URL('bundler.ts', import.meta.url));
const MIB = 1024 * 1024;
/** Ours: of each of its two processes; playwright-core takes 150 MiB of esbuild's. */
const DATA_BYTES = 2048 * MIB;
/** Ours: twice the largest bundle. */
const FILE_BYTES = 64 * MIB;
const FILES = 4_096;
/** Ours: ten errors of a line each, or every warning of a large project. */
const SAID_MAX_BYTES = 4 * MIB;
const TAIL_BYTES = 2_000;

/** As `bundle`. Throws BundleError for sources that the bundler does not survive, too. */
export async function bundleApart(options: BundleOptions & { log: Log }): Promise<Bundle> {
  const { root, entrypoint, outFile, signal, log } = options;
  signal.throwIfAborted();
  const { child, exited, kill } = openNone(log).launch({
    argv: () => [process.execPath, PROGRAM, root, entrypoint, outFile],
    mounts: [],
    env: moduleCacheEnv,
    tmpBytes: 0,
    limits: { dataBytes: DATA_BYTES, files: FILES, fileBytes: FILE_BYTES },
    stdio: ['ignore', 'pipe', 'pipe'],
    nestedNamespaces: false,
  });
  signal.addEventListener('abort', kill, { once: true });
  const closed = once(child, 'close').catch(() => undefined); // it could not be started: exit 127
  const said = child.stdout && keepTail(child.stdout, SAID_MAX_BYTES);
  const stderr = child.stderr && keepTail(child.stderr, TAIL_BYTES);
  const { code, signal: by } = await exited;
  await closed;
  signal.removeEventListener('abort', kill);
  signal.throwIfAborted();
  if (code !== 0) {
    log.warn({ code, by, said: stderr?.() }, 'the bundler did not survive a project');
    throw new BundleError('the bundler ran out of memory or crashed on them; use simpler sources');
  }
  const answer = JSON.parse(said?.() ?? '') as Said;
  if ('refused' in answer) throw new BundleError(answer.refused);
  return answer.made;
}
