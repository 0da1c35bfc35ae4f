/** The main job with our own CLI, called through npx from a user's directory. */
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { functionIds, mainJob, shell, userProject } from '../../support/clients/journey.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot } from '../../support/service/stack.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const journey = suite('tabern');

journey('a function is published and invoked, and its webhook receives signed events', async () => {
  await using receiver = await startReceiver();
  await using site = await startSite();
  await using stack = await boot({ webhookCa: receiver.caPath });
  await using project = userProject('title');
  const env = {
    TABERN_API_KEY: stack.apiKey,
    TABERN_BASE_URL: stack.url,
    npm_config_ignore_scripts: 'true', // `prepare` would replace files that other tests use
  };
  const inProject = { cwd: project.path, env };
  const tabern = (...words: string[]) =>
    shell(
      ['npm', 'exec', '--offline', '--yes', `--package=${ROOT}`, '--', 'tabern', ...words],
      inProject,
    );

  const published = await tabern('publish', 'index.ts');
  is(published.code, 0, published.stdout + published.stderr + stack.logs());
  const ids = await functionIds(stack);
  for (const id of Object.values(ids)) match(published.stdout, id);
  const again = await tabern('publish', 'index.ts');
  is(again.code, 0, again.stdout + again.stderr);
  is(
    JSON.stringify(await functionIds(stack)),
    JSON.stringify(ids),
    'the same names keep their ids',
  );
  const title = must(ids['title'], 'title');
  type Versions = { results: unknown[]; total: number };
  is((await stack.call<Versions>(`/v1/functions/${title}/versions`)).total, 2);

  await mainJob(stack, { receiver, siteUrl: `${site.url}/` });

  const invoked = await tabern(
    'invoke',
    title,
    '--params',
    JSON.stringify({ url: `${site.url}/kitchen` }),
  );
  is(invoked.code, 0, invoked.stdout + invoked.stderr);
  match(invoked.stdout, /Kitchen/);
  const failed = await tabern('invoke', must(ids['fail'], 'fail'));
  is(failed.code, 1);
  match(failed.stdout + failed.stderr, /it was asked to fail/);
});

journey.run();
