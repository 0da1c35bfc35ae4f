/**
 * The journeys of the console with the single executable, in a network namespace that has loopback
 * only: the console needs no file beside the executable and no other host.
 */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import { equal, match, ok } from 'uvu/assert';
import { builtBinary } from '../../support/service/binary.ts';
import { sized } from '../../support/whole.ts';

const journey = suite('journey/install/console');

const ROOT = join(import.meta.dirname, '../../..');
const JOURNEYS = 'test/journey/console';
const files = readdirSync(join(ROOT, JOURNEYS)).filter((name) => name.endsWith('.test.ts'));
/** Loopback is down in a new namespace. */
const OFFLINE = 'ip link set lo up && exec "$0" "$@"';
/** Ours: below that of this file. */
const LIMIT_MS = 840_000;
const OUTPUT_MAX_BYTES = 64 << 20;

journey('the journeys are green with the executable alone, without a network', async () => {
  await using dir = await builtBinary();
  const names = sized(['console.test.ts'], files);
  const paths = names.map((name) => join(JOURNEYS, name));
  const printed = await runOffline(paths, join(dir.path, 'tabern'));
  const [, passed, failed] = printed.match(/(\d+) passed, (\d+) failed\s*$/) ?? [];
  equal([failed, Number(passed) >= names.length], ['0', true], printed);
});

journey('the namespace reaches loopback and no other address', async () => {
  const { stdout } = await inNamespace(['ip', '-oneline', 'link', 'show', 'up'], {});
  match(stdout, /^\d+: lo:/);
  ok(!stdout.trimEnd().includes('\n'), stdout);
});

/** The output of the run of these test files. */
async function runOffline(paths: readonly string[], program: string): Promise<string> {
  const env = { TABERN_TEST_PROGRAM: program };
  const command = [process.execPath, join(ROOT, 'test/run.ts'), '--jobs', '1', ...paths];
  return (await inNamespace(command, env)).stdout;
}

async function inNamespace(command: readonly string[], env: Record<string, string>) {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const words = [...user, '--net', '--', 'sh', '-c', OFFLINE, ...command];
  const options = {
    cwd: ROOT,
    env: { ...process.env, ...env },
    timeout: LIMIT_MS,
    maxBuffer: OUTPUT_MAX_BYTES,
  };
  try {
    return await promisify(execFile)('unshare', words, options);
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    if (stdout) return { stdout }; // red tests; the caller reads the last line
    throw error;
  }
}

journey.run();
