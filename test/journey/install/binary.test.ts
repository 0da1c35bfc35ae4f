/** The single executable alone: no Node, no npm, no checkout, an empty PATH. */
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { mainJob, shell, userProject } from '../../support/clients/journey.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { startSite } from '../../support/servers/site.ts';
import { builtBinary } from '../../support/service/binary.ts';
import { familyOf } from '../../support/service/processes.ts';
import { boot } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('binary');

journey('the executable publishes, invokes and delivers webhooks with an empty PATH', async () => {
  await using dir = await builtBinary();
  equal(readdirSync(dir.path), ['tabern']);
  await using cache = tempDirectory();
  const program = join(dir.path, 'tabern');
  // also without the npm that runs this test
  const alone = { PATH: '/nonexistent', TABERN_CACHE_DIR: cache.path, npm_execpath: '' };
  await using receiver = await startReceiver();
  await using site = await startSite();
  await using stack = await boot({
    command: [program],
    webhookCa: receiver.caPath,
    env: alone,
  });
  await using project = userProject('title');
  const env = { ...alone, TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const published = await shell([program, 'publish', 'index.ts'], { cwd: project.path, env });
  is(published.code, 0, published.stdout + published.stderr + stack.logs());

  await mainJob(stack, { receiver, siteUrl: `${site.url}/` });

  const pages = ['/docs', '/docs/api', '/docs/sessions', '/docs/guide.js', '/docs/search.json'];
  for (const path of ['/openapi.json', '/llms.txt', '/docs/swagger-ui-bundle.js', ...pages]) {
    is((await stack.fetch(path)).status, 200, path);
  }
  match(stack.logs(), /"msg":"sandbox is bwrap"/);
  const programs = familyOf(stack.pid).map(({ pid }) => programOf(pid));
  const [tree = ''] = readdirSync(cache.path);
  const { ino } = statSync(join(cache.path, tree, 'bin/tabern'));
  is(programs.filter((one) => one === ino).length >= 2, true, 'the service and its runner');
  is(programs.includes(statSync(process.execPath).ino), false);
  await stack.kill('SIGTERM');
  expectRepaired(program, cache.path);
});

/** A cache without its modules is repaired; an unsafe or impossible directory is refused. */
function expectRepaired(program: string, cache: string): void {
  const run = (at: string) => {
    const env = { PATH: '/nonexistent', TABERN_CACHE_DIR: at };
    return spawnSync(program, ['version'], { env, encoding: 'utf8' });
  };
  const trees = readdirSync(cache);
  rmSync(join(cache, trees[0] ?? '', 'node_modules'), { recursive: true });
  match(run(cache).stdout, /^\d+\.\d+\.\d+/);
  equal(readdirSync(cache), trees, 'no temporary directory is left');

  chmodSync(cache, 0o777);
  const refused = run(cache);
  is(refused.status, 78);
  match(refused.stderr, /others may write to it; set TABERN_CACHE_DIR to a directory of yours/);
  is(run(join(program, 'below')).status, 78, 'no directory can be created there');
}

/** The inode of the file: its path is different in a jail. */
function programOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}/exe`, { throwIfNoEntry: false })?.ino;
}

journey.run();
