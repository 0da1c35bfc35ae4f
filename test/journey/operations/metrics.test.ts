/** Monitoring of a running service: GET /readyz, and one GET /metrics for all roles. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { CHART } from '../../support/service/helm.ts';
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

journey('each figure of the dashboard and of the alerts is one of GET /metrics', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  await using receiver = await startReceiver();
  const env = { TABERN_METRICS_LISTEN: listen, TABERN_SESSION_GRACE_MS: '100' };
  await using stack = await boot({ env, webhookCa: receiver.caPath });
  const read = async () => (await fetch(`http://${listen}/metrics`)).text();
  const wanted = figuresOf(readFileSync(join(CHART, 'files/dashboard.json'), 'utf8'));
  const alerted = figuresOf(readFileSync(join(CHART, 'files/alerts.yaml'), 'utf8'));
  assert.ok(wanted.length > 15 && alerted.length > 8);
  // each figure is there when what it counts has happened once
  const endpoint = { endpoint: `${receiver.url}/hook`, eventTypes: ['sessions.ended'] };
  await stack.call('/v1/webhooks', { json: endpoint });
  const { connectUrl } = await stack.call<{ connectUrl: string }>('/v1/sessions', {
    method: 'POST',
  });
  const browser = await chromium.connectOverCDP(connectUrl);
  await until(async () => /tabern_cdp_round_trip_seconds_count [1-9]/.test(await read()));
  await browser.close();
  await until(async () => /webhook_attempts_total{/.test(await read()));
  const text = await read();
  assert.equal(
    [...wanted, ...alerted].filter((figure) => !isIn(text, figure)),
    [],
  );
  assert.not.ok(isIn(text, { name: 'tabern_browser', labels: [] }), 'half of a name');
  assert.not.ok(isIn(text, { name: 'tabern_runners', labels: ['region'] }), 'no such label');
});

journey.run();

type Figure = { name: string; labels: string[] };

/** Names of figures in queries, with the names of labels that choose among them. */
function figuresOf(text: string): Figure[] {
  const found = text.matchAll(/\b((?:tabern|webhook)_[a-z0-9_]+)(?:\{([^}]*)\})?/g);
  return [...found].map(([, name = '', chosen = '']) => {
    const labels = [...chosen.matchAll(/(\w+)(?:=~?|!=)/g)].map(([, label = '']) => label);
    return { name, labels };
  });
}

/** Whether some sample has that name and those labels. */
function isIn(text: string, { name, labels }: Figure): boolean {
  const samples = text.split('\n').filter((line) => new RegExp(`^${name}[{ ]`).test(line));
  return samples.some((line) => labels.every((label) => line.includes(`${label}="`)));
}
