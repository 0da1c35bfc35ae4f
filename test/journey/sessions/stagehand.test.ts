/**
 * The published Stagehand 3 with the addresses of this service, in its local and its hosted mode.
 */
import { join } from 'node:path';
import { suite } from 'uvu';
import { is, match, ok } from 'uvu/assert';
import { shell, userProject } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/stagehand');

type Session = { status: string; userMetadata: Record<string, unknown> };

journey('Stagehand opens a page in both modes, and its session ends', async () => {
  await using site = await startSite();
  await using stack = await boot({ env: { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' } });
  await using project = userProject('stagehand');
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  const own = process.env as Record<string, string>; // for the npm registry
  const installed = await shell(['npm', 'ci', ...flags], { cwd: project.path, env: own });
  is(installed.code, 0, installed.stderr);
  for (const mode of ['local', 'hosted']) {
    const ran = await shell([process.execPath, join(project.path, 'main.mjs')], {
      cwd: project.path,
      env: {
        MODE: mode,
        SITE: site.url,
        BROWSERBASE_API_KEY: stack.apiKey,
        BROWSERBASE_PROJECT_ID: stack.projectId,
        BROWSERBASE_BASE_URL: stack.url,
        STAGEHAND_API_URL: stack.url,
      },
    });
    is(ran.code, 0, `${mode}: ${ran.stdout}${ran.stderr}`);
    const said = /^\{.*\}$/m.exec(ran.stdout)?.[0] ?? '';
    match(said, /The inn/, `${mode}: ${ran.stdout}${ran.stderr}`);
    const { sessionId } = JSON.parse(said) as { sessionId: string };
    const session = await until(async () => {
      const read = await stack.call<Session>(`/v1/sessions/${sessionId}`);
      return read.status === 'COMPLETED' && read;
    });
    is(session.userMetadata['stagehand'], 'true');
    ok((await stack.call<unknown[]>(`/v1/sessions/${sessionId}/logs`)).length > 0);
  }
});

journey.run();
