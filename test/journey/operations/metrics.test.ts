/** Monitoring of a running service: GET /readyz, and one GET /metrics for all roles. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { CHART } from '../../support/service/helm.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/operations/metrics');
const DASHBOARD = readFileSync(join(CHART, 'files/dashboard.json'), 'utf8');
const ALERTS = readFileSync(join(CHART, 'files/alerts.yaml'), 'utf8');

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

journey('figures of dashboard and alerts are of GET /metrics, counters as sums', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  await using receiver = await startReceiver();
  const env = { TABERN_METRICS_LISTEN: listen, TABERN_SESSION_GRACE_MS: '100' };
  await using stack = await boot({ env, webhookCa: receiver.caPath });
  const read = async () => (await fetch(`http://${listen}/metrics`)).text();
  const [wanted, alerted] = [figuresOf(DASHBOARD), figuresOf(ALERTS)];
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
  const queries = queriesOf(DASHBOARD, ALERTS);
  assert.ok(queries.length > 25);
  const counted = countersOf(text);
  assert.ok(counted.includes('tabern_sessions_ended_total'));
  assert.equal(
    queries.filter((query) => isPartOfSum(query, counted)),
    [],
  );
  const parts = [
    'max by (status) (rate(tabern_sessions_ended_total[5m])) * 60',
    'max by (a) (sum by (a, pod) (increase(tabern_sessions_ended_total{status="ERROR"}[5m]))) > 1',
    'avg(rate(webhook_attempts_total[5m])) by (class)',
    'sum(tabern_runners) > min(rate(tabern_cdp_round_trip_seconds_bucket[5m]))',
  ];
  for (const query of parts) assert.ok(isPartOfSum(query, counted), query);
  const whole = 'max(tabern_runners) > sum(rate(tabern_sessions_ended_total[5m]))';
  assert.not.ok(isPartOfSum(whole, counted));
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

/** The expressions of panels and of rules. */
function queriesOf(dashboard: string, alerts: string): string[] {
  const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] };
  const { groups } = load(alerts) as { groups: { rules: { expr: string }[] }[] };
  const asked = [
    ...panels.flatMap(({ targets }) => targets),
    ...groups.flatMap(({ rules }) => rules),
  ];
  return asked.map(({ expr }) => expr);
}

/**
 * Counters and histograms: each process adds to its own what it did itself, as a core the ends that
 * it wrote. Gauges of core are read from the database, or heard by all cores.
 */
function countersOf(text: string): string[] {
  const found = text.matchAll(/^# TYPE (\S+) (?:counter|histogram)$/gm);
  return [...found].map(([, name = '']) => name);
}

/** Whether the query takes one process's part of a counter for the figure of all. */
function isPartOfSum(query: string, counted: readonly string[]): boolean {
  const chosen = [...query.matchAll(/\b(?:max|min|avg)\s*(?:(?:by|without)\s*\([^)]*\)\s*)?\(/g)];
  const contents = chosen.map(({ 0: head, index }) =>
    untilClosed(query.slice(index + head.length)),
  );
  return figuresOf(contents.join('\n')).some(({ name }) =>
    counted.some((one) => name === one || name.replace(/_(?:bucket|sum|count)$/, '') === one),
  );
}

/** What is before the parenthesis that closes one before the text. */
function untilClosed(text: string): string {
  let open = 1;
  const end = [...text].findIndex((sign) => {
    if (sign === '(') open += 1;
    if (sign === ')') open -= 1;
    return open === 0;
  });
  return text.slice(0, end);
}
