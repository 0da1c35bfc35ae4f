/**
 * The cost of accepted input: for each limit in bytes, the worst input of that size and a bound of
 * the CPU time to read it. The gateway and core are real.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { KEY } from '../../core/boot.ts';
import { openUploads } from '../routes/files/contexts.ts';

const test = suite('gateway/rest/input-cost');

/** Of this whole process, client included. A refused body takes 10 to 150 ms. */
const CPU_MAX_MS = 1_000;
const MIB = 1 << 20;
const fill = (unit: string, bytes: number) =>
  Array.from({ length: Math.floor(bytes / (unit.length + 1)) }, () => unit).join();
const sessions = (settings: string) => `{"browserSettings":${settings}}`;

/** Bodies of at most 1 MiB that a route reads. */
const BODIES: [string, string, string][] = [
  ['nested lists', '/v1/contexts', `{"a":${'['.repeat(MIB / 2 - 5)}${']'.repeat(MIB / 2 - 5)}}`],
  ['unknown members', '/v1/sessions', `{${numbered(40_000)},"timeout":1}`],
  [
    'unknown settings',
    '/v1/sessions',
    `${sessions(`{${numbered(40_000)}}`).slice(0, -1)},"timeout":1}`,
  ],
  ['domains', '/v1/sessions', sessions(`{"allowedDomains":[${fill('"a"', MIB - 100)}]}`)],
  ['members of proxies', '/v1/sessions', `{"proxies":[{"type":"none",${numbered(40_000)}}]}`],
  ['nested metadata', '/v1/sessions', `{"userMetadata":${nested(30)},"timeout":1}`],
  ['wide metadata', '/v1/sessions', `{"userMetadata":{${numbered(4_000)}}}`],
  ['a long name', '/v1/contexts', `{"name":"${'y'.repeat(MIB - 100)}"}`],
  [
    'a long endpoint',
    '/v1/webhooks',
    `{"endpoint":"https://${'a.'.repeat(MIB / 3)}","eventTypes":["x"]}`,
  ],
  [
    'event types',
    '/v1/webhooks',
    `{"endpoint":"https://a.test/","eventTypes":[${fill('"x"', 60_000)}]}`,
  ],
];

function numbered(count: number): string {
  return Array.from({ length: count }, (_, n) => `"m${n}":1`).join();
}

function nested(levels: number): string {
  return `${'{"a":['.repeat(levels / 2)}1${']}'.repeat(levels / 2)}`;
}

async function measured(ask: () => Promise<Response>) {
  const before = process.cpuUsage();
  const answer = await ask();
  await answer.arrayBuffer();
  const { user, system } = process.cpuUsage(before);
  return { status: answer.status, ms: (user + system) / 1_000 };
}

test('a body of 1 MiB, whatever is in it, is refused in little CPU time', async () => {
  await using app = await openUploads();
  const headers = { 'x-svc-api-key': KEY, 'content-type': 'application/json' };
  for (const [what, path, body] of BODIES) {
    assert.ok(body.length <= MIB, what);
    const url = app.gateway.url + path;
    const { status, ms } = await measured(() => fetch(url, { method: 'POST', headers, body }));
    assert.is(status, 400, what);
    assert.ok(ms < CPU_MAX_MS, `${what}: ${ms} ms`);
  }
});

test('a query and headers of the largest size are read in little CPU time', async () => {
  await using app = await openUploads();
  const dots = Array.from({ length: 1_200 }, () => "['a']").join('');
  const queries = [
    `q=user_metadata${encodeURIComponent(dots).slice(0, 7_900)}`,
    `q=${"user_metadata['a']:'".padEnd(7_900, '%5C')}`,
    fill('a=1', 7_900).replaceAll(',', '&'),
  ];
  for (const query of queries) {
    const url = `${app.gateway.url}/v1/sessions?${query}`;
    const headers = {
      'x-svc-api-key': KEY,
      prefer: fill('wait=x', 12_000),
      cookie: fill('a', 8_000),
    };
    const { status, ms } = await measured(() => fetch(url, { headers }));
    assert.ok(status >= 200 && status < 500, `${status}`);
    assert.ok(ms < CPU_MAX_MS, `${query.slice(0, 30)}: ${ms} ms`);
  }
});

test.run();
