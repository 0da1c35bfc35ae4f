import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { merged, plainParams, problemOf } from '../../../core/validation/session-params.ts';
import { SessionCreateParams } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';

const test = suite('core/validation/session-params');

test('params of the published clients are accepted', () => {
  const good = [
    {},
    { timeout: 60 },
    { timeout: 900, proxies: true },
    { proxies: [{ type: 'none' }] },
    { browserSettings: { advancedStealth: true, os: 'linux', viewport: { width: 1 } } },
    { browserSettings: { context: { id: 'x', persist: true }, size: 'small' } },
    { userMetadata: { a: 'b' }, unpublished: 1 },
    { browserSettings: { engine: 'headless-shell', enablePdfViewer: false, size: 'xlarge' } },
    { browserSettings: { engine: 'headless-shell' }, proxySettings: { caCertificates: ['x'] } },
  ];
  for (const params of good) assert.is(problemOf(params), undefined, JSON.stringify(params));
});

const WRONG: [unknown, string][] = [
  [{ keepAlive: false }, '.keepAlive'],
  [{ region: 'us-west-2' }, '.region'],
  [{ playground: 1 }, '.playground'],
  [{ labels: ['a'] }, '.labels'],
  [{ scheduleMode: 1 }, '.scheduleMode'],
  [{ solverServices: 1 }, '.solverServices'],
  [{ projectId: 'p' }, '.projectId'],
  [{ timeout: 59 }, '.timeout'],
  [{ timeout: 901 }, '.timeout'],
  [{ timeout: '60' }, '.timeout'],
  [{ proxies: 'yes' }, '.proxies'],
  [{ browserSettings: [] }, '.browserSettings'],
  [{ browserSettings: { recordSession: 'no' } }, '.browserSettings.recordSession'],
  [{ browserSettings: { context: {} } }, '.browserSettings.context'],
  [{ userMetadata: { a: 'x'.repeat(512) } }, '.userMetadata'],
  [{ browserSettings: { size: 'huge' } }, '.browserSettings.size'],
  [{ browserSettings: { extensions: Array(6).fill('x') } }, '.browserSettings.extensions'],
  [
    { browserSettings: { engine: 'headless-shell', enablePdfViewer: true } },
    '.browserSettings.enablePdfViewer',
  ],
  [{ proxySettings: { caCertificates: Array(11).fill('x') } }, '.proxySettings.caCertificates'],
  ['text', ''],
];
for (const [params, path] of WRONG) {
  test(`${JSON.stringify(params).slice(0, 60)} is refused`, () => {
    assert.is(problemOf(params)?.path, path);
  });
}

test("the invocation's value wins, objects merge, lists replace", () => {
  const base = { timeout: 60, browserSettings: { blockAds: true, os: 'mac', list: [1] } };
  const over = { timeout: 90, browserSettings: { os: 'linux', list: [2] } };
  const together = merged(base, over);
  assert.equal(together, {
    timeout: 90,
    browserSettings: { blockAds: true, os: 'linux', list: [2] },
  });
  assert.is(base.browserSettings.os, 'mac', 'the version stays as it is');
});

test('a merge does not change a prototype', () => {
  const over = JSON.parse('{"__proto__":{"polluted":1},"a":{"__proto__":{"polluted":1}}}');
  assert.is((merged({ a: {} }, over) as { polluted?: number }).polluted, undefined);
  assert.is(({} as { polluted?: number }).polluted, undefined);
});

test('absent members of a message are absent in the params', () => {
  const message = SessionCreateParams.fromJSON({ browserSettings: { blockAds: false } });
  assert.equal(plainParams(message), { browserSettings: { blockAds: false } });
  assert.equal(plainParams(undefined), {});
  const own = { userMetadata: { list: [], none: null }, proxies: null };
  assert.equal(plainParams(CreateSessionRequest.fromJSON(own)), { userMetadata: own.userMetadata });
});

test('more than 64 KiB in all is refused', () => {
  const params = (length: number) => ({ unpublished: 'x'.repeat(length) });
  const frame = JSON.stringify(params(0)).length;
  assert.is(problemOf(params(65_536 - frame)), undefined);
  const problem = 'must be at most 65536 characters of JSON.';
  assert.equal(problemOf(params(65_537 - frame)), { path: '', problem });
});

/** The most expensive params that fit a body of 1 MiB. */
const COSTLY = {
  'one long pattern': [{ type: 'none', domainPattern: '(?:.?.?.?){1000}'.repeat(100) }],
  'many short patterns': Array.from({ length: 15_000 }, () => ({
    type: 'none',
    domainPattern: '(?:.?.?.?.?.?.?){1000}',
  })),
  'twenty patterns of the largest size': Array.from({ length: 20 }, () => ({
    type: 'none',
    domainPattern: '(?:\\pL?\\pN?){400}',
  })),
};

for (const [what, proxies] of Object.entries(COSTLY)) {
  test(`${what}: checked within milliseconds`, () => {
    const before = process.threadCpuUsage();
    problemOf({ proxies });
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 300_000, `${(user + system) / 1_000} ms`);
  });
}

test.run();
