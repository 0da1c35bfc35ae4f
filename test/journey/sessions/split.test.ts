/**
 * Roles apart (support/service/apart/split.ts): sessions and their files through each gateway to
 * each runner. TABERN_TEST_TOPOLOGY=split runs every other journey like that.
 */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { processes } from '../../support/service/processes.ts';
import { SPLIT } from '../../support/service/serve.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/split');

type Session = { id: string; connectUrl: string };

journey('sessions run on two runners, reached by two gateways over TLS', async () => {
  await using stack = await boot({ command: SPLIT, env: { TABERN_SESSIONS_MAX: '2' } });
  const roles = () => processes().filter(({ parent }) => parent === stack.pid);
  const names = roles().map(({ command }) => / (core|gateway|runner)\b/.exec(command)?.[1]);
  equal(names.sort(), ['core', 'core', ...Array(2).fill('gateway'), ...Array(3).fill('runner')]);
  await until(async () => {
    const answer = await stack.fetch('/readyz');
    return answer.ok;
  }, 60_000);
  // six places: two of each runner
  const sessions = await Promise.all(
    Array.from({ length: 6 }, () => stack.call<Session>('/v1/sessions', { json: {} })),
  );
  for (const { id, connectUrl } of sessions) {
    const browser = await chromium.connectOverCDP(connectUrl);
    const page = browser.contexts()[0]?.pages()[0];
    await page?.goto('data:text/html,<title>apart</title>');
    is(await page?.title(), 'apart');
    const { pages } = await stack.call<{ pages: { title: string }[] }>(`/v1/sessions/${id}/debug`);
    equal(
      pages.map(({ title }) => title),
      ['apart'],
      'the gateway calls the session server',
    );
    await browser.close();
  }
});

journey.run();
