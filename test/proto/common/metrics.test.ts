/** Metrics: silent when off, one text of several processes when on, and a server of their own. */
import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { NO_METRICS, openMetrics, textOf } from '../../../proto/common/metrics.ts';
import { openMetricsServer } from '../../../proto/common/metrics-server.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import { until } from '../../support/poll.ts';

const test = suite('proto/common/metrics');

const WORK = { name: 'work_total', help: 'Work.', labels: ['kind'] };
/** As proto/common/metrics-server.ts. */
const CONNECTIONS_MAX = 32;
const listen = { host: '127.0.0.1', port: 0 };
const log = openLog({ role: 'test', level: 'silent' });

test('metrics of two processes are one text, each family once', async () => {
  const [one, two] = [await openMetrics('one'), await openMetrics('two')];
  one.add(WORK, { kind: 'a' });
  two.add(WORK, { kind: 'a' }, 2);
  two.add(WORK, { kind: 'b' });
  const samples = await Promise.all([one.samples(), two.samples(), NO_METRICS.samples()]);
  // As between processes.
  const text = await textOf(JSON.parse(JSON.stringify(samples)));
  assert.match(text, '\nwork_total{kind="a"} 3\nwork_total{kind="b"} 1\n');
  assert.is(text.match(/# TYPE work_total counter/g)?.length, 1);
  for (const role of ['one', 'two']) {
    assert.match(text, `tabern_process_resident_bytes{role="${role}"} `);
  }
});

test('a label that its family does not have is refused', async () => {
  const metrics = await openMetrics('one');
  assert.throws(() => metrics.add(WORK, { project: 'a' }), /project/);
});

test('the metrics server serves GET /metrics only, and reveals no error', async () => {
  let isBroken = false;
  const metrics = await openMetrics('one');
  const read = async () => {
    if (isBroken) throw new Error('a secret path');
    return [await metrics.samples()];
  };
  await using server = await openMetricsServer({ listen, read, log });
  const answer = await fetch(server.url);
  assert.is(answer.status, 200);
  assert.match(String(answer.headers.get('content-type')), /^text\/plain; version=0\.0\.4/);
  assert.match(await answer.text(), 'tabern_process_cpu_seconds{role="one"}');
  assert.is((await fetch(new URL('/', server.url))).status, 404);
  assert.is((await fetch(server.url, { method: 'POST' })).status, 404);
  const refused = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
  for (const [name, value] of Object.entries(refused)) {
    assert.is((await fetch(server.url, { headers: { [name]: value } })).status, 403, name);
  }
  const { port } = new URL(server.url);
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const headers = { host: `evil.test:${port}` };
  get({ host: '127.0.0.1', port, path: '/metrics', headers }, (page) => {
    page.resume();
    resolve(page.statusCode);
  });
  assert.is(await promise, 403, 'a name that leads here is no name of this machine');
  isBroken = true;
  const broken = await fetch(server.url);
  assert.is(broken.status, 500);
  assert.not.match(await broken.text(), 'secret');
});

test('connections that send nothing keep a probe out for seconds only', async () => {
  const read = async () => [await (await openMetrics('one')).samples()];
  await using server = await openMetricsServer({ listen, read, log });
  const port = Number(new URL(server.url).port);
  await using idle = new AsyncDisposableStack();
  for (let count = 0; count < CONNECTIONS_MAX; count += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    idle.defer(() => void socket.destroy());
    await once(socket, 'connect');
  }
  assert.is(await fetch(server.url).catch(() => 'none'), 'none', 'all places are taken');
  await until(async () => (await fetch(server.url).catch(() => undefined))?.status === 200, 45_000);
});

test('an address to listen on is host:port, or a port of loopback', () => {
  const read = (text?: string) => readSetting({ TABERN_METRICS_LISTEN: text }, 'METRICS_LISTEN');
  assert.is(read(), undefined);
  assert.equal(read('9464'), { host: '127.0.0.1', port: 9464 });
  assert.equal(read('0.0.0.0:1'), { host: '0.0.0.0', port: 1 });
  assert.equal(read('[::1]:9464'), { host: '::1', port: 9464 });
  for (const wrong of ['localhost', 'a:b', '1:70000', ':']) {
    assert.throws(
      () => read(wrong),
      (error: unknown) => error instanceof ConfigError,
      wrong,
    );
  }
});

test.run();
