/** The main job with the published CLI, unmodified: `bb publish`, `bb invoke`. */
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { functionIds, mainJob, shell, userProject } from '../../support/clients/journey.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot } from '../../support/service/stack.ts';

const BB = fileURLToPath(new URL('../../../node_modules/.bin/bb', import.meta.url));
const journey = suite('bb');

journey('a function is published and invoked, and its webhook receives signed events', async () => {
  await using receiver = await startReceiver();
  await using site = await startSite();
  await using stack = await boot({ webhookCa: receiver.caPath });
  await using project = userProject('title-bb');
  const env = {
    BROWSERBASE_API_KEY: stack.apiKey,
    BROWSERBASE_PROJECT_ID: stack.projectId,
    BROWSERBASE_API_BASE_URL: stack.url,
  };
  const inProject = { cwd: project.path, env };

  const published = await shell([BB, 'publish', 'index.ts'], inProject);
  is(published.code, 0, published.stdout + published.stderr);
  const ids = await functionIds(stack);
  is(Object.keys(ids).sort().join(), 'echo,fail,title');
  for (const id of Object.values(ids)) match(published.stdout, id);

  await mainJob(stack, { receiver, siteUrl: `${site.url}/` });

  const params = '{"word":"hej"}';
  const echo = must(ids['echo'], 'echo');
  const invoked = await shell([BB, 'invoke', echo, '--params', params], inProject);
  is(invoked.code, 0, invoked.stdout + invoked.stderr);
  match(invoked.stdout, /"times": 1/); // the default that the function's own schema fills in

  const wrong = await stack.fetch(`/v1/functions/${echo}/invoke`, { json: { params: {} } });
  is(wrong.status, 400, 'the schema is checked before anything starts');
  match(((await wrong.json()) as { message: string }).message, /word/);
});

journey('publishing with a wrong key fails with the reason', async () => {
  await using stack = await boot();
  await using project = userProject('title-bb');
  const published = await shell([BB, 'publish', 'index.ts'], {
    cwd: project.path,
    env: {
      BROWSERBASE_API_KEY: 'svc_a_key_of_nobody_at_all',
      BROWSERBASE_PROJECT_ID: stack.projectId,
      BROWSERBASE_API_BASE_URL: stack.url,
    },
  });
  is(published.code, 1);
  match(published.stdout + published.stderr, /Invalid API key/);
  is((await stack.call<{ total: number }>('/v1/functions/builds')).total, 0);
});

journey.run();
