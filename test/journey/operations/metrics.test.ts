/** Monitoring of a running service: GET /readyz, and one GET /metrics for all roles. */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/operations/metrics');

journey('one response has the metrics of all roles, without ids, keys or addresses', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const env = { TABERN_METRICS_LISTEN: listen, TABERN_SESSION_GRACE_MS: '100' };
  await using stack = await boot({ env });
  const read = async () => (await fetch(`http://${listen}/metrics`)).text();
  await until(async () => (await fetch(`${stack.url}/readyz`)).status === 200);
  const session = await stack.call<{ id: string; connectUrl: string }>('/v1/sessions', {
    method: 'POST',
  });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  await until(async () => /tabern_cdp_round_trip_seconds_count [1-9]/.test(await read()));
  assert.match(await read(), '\ntabern_browsers{state="taken"} 1\n');
  await browser.close();
  const ended = 'tabern_sessions_ended_total{status="COMPLETED",reason="left"} 1\n';
  await until(async () => (await read()).includes(ended));
  const text = await read();
  for (const role of ['serve', 'runner']) {
    assert.match(text, `tabern_event_loop_delay_seconds{role="${role}",quantile="0.99"}`);
  }
  const route = '{method="POST",route="/v1/sessions",status="201"} 1\n';
  assert.match(text, `\ntabern_http_requests_total${route}`);
  for (const name of [session.id, stack.projectId, stack.apiKey, stack.dataDir, '127.0.0.1']) {
    assert.not.match(text, name);
  }
  const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  assert.is(new Set(families).size, families.length, 'each family once');
  assert.is((await stack.fetch('/metrics')).status, 404, 'not where tenants are');
});

journey.run();
