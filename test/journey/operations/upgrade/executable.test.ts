/**
 * `tabern upgrade` of the single executable: a newer file at the same path takes over, and the
 * unpacked files of the older one stay while it runs, however old they are.
 */
import { copyFileSync, readdirSync, readlinkSync, renameSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { until } from '../../../support/poll.ts';
import { builtBinary } from '../../../support/service/binary.ts';
import { familyOf, isRunning } from '../../../support/service/processes.ts';
import { boot, type Stack } from '../../../support/service/stack.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { copyProgram } from './program-copy.ts';
import {
  read,
  release,
  runUpgrade,
  type Session,
  startTypist,
  UPGRADE_LIMIT_MS,
} from './upgrading.ts';

const journey = suite('journey/operations/upgrade/executable');
/** In seconds: longer than files of a version that does not run are kept. */
const LONG_AGO = 400 * 24 * 3_600;

journey('a newer executable at the same path takes over, with a live session', async () => {
  await using cache = tempDirectory('tabern-cache-');
  await using installed = await builtBinary();
  await using newer = await newerBinary('9.0.1');
  const program = join(installed.path, 'tabern');
  const variables = { TABERN_CACHE_DIR: cache.path };
  await using stack = await boot({ command: [program], env: variables });
  await using typist = await startTypist(stack);
  const { pid } = stack;
  const runner = await stack.runnerPid();
  const old = join(cache.path, must(readdirSync(cache.path)[0], 'the unpacked files'));
  const files = filesOf(old);
  const then = Date.now() / 1_000 - LONG_AGO;
  utimesSync(old, then, then);

  copyFileSync(join(newer.path, 'tabern'), `${program}.new`);
  renameSync(`${program}.new`, program);
  const keys = typist.typed().length;
  equal(await runUpgrade(stack, [program], variables), { code: 0, said: 'tabern 9.0.1 serves\n' });

  is(stack.pid, pid);
  await until(() => typist.typed().length > keys);
  ok(isRunning(runner), 'it keeps the first session');
  equal(filesOf(old), files, 'of a program that runs nothing is removed');
  equal(treesOf(stack), [old, treeOf(cache.path, '9.0.1')].sort(), 'both versions run');
  const { id } = await stack.call<Session>('/v1/sessions', { json: {} });
  await release(stack, id);
  is((await read(stack, typist.id)).status, 'RUNNING');
  await typist.stop();
  await until(() => !isRunning(runner), UPGRADE_LIMIT_MS);
});

/** Of the same sources with another version. */
async function newerBinary(version: string) {
  await using copy = copyProgram();
  copy.release(version);
  return await builtBinary([], join(copy.path, 'gateway/packaging/build.ts'));
}

const filesOf = (dir: string) => readdirSync(dir, { recursive: true }).sort();

const treeOf = (cache: string, version: string) =>
  join(
    cache,
    must(
      readdirSync(cache).find((name) => name.startsWith(version)),
      version,
    ),
  );

/** The unpacked files that processes of the service run from. */
function treesOf({ pid }: Stack): string[] {
  const END = '/bin/tabern';
  const programs = familyOf(pid).map((one) => readlinkSync(`/proc/${one.pid}/exe`));
  const ours = programs.filter((path) => path.endsWith(END));
  return [...new Set(ours.map((path) => path.slice(0, -END.length)))].sort();
}

journey.run();
