import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { printable, readCoreConfig } from '../../core/config.ts';
import { ConfigError } from '../../proto/common/env.ts';

const test = suite('core/config');

test('an empty environment results in the documented defaults', () => {
  const { dataDir, ...rest } = readCoreConfig({});
  assert.match(dataDir, /\/tabern_data$/);
  assert.equal(rest, {
    durability: 'full',
    leaseMs: 15_000,
    lostMs: 300_000,
    sweepMs: 1_000,
    clockSettleMs: 600_000,
    keyPairs: 16,
    concurrency: 25,
    queueMax: 1_000,
    extensionsMax: 100,
    quotas: {
      contexts: 10_000,
      contextMib: 20_480,
      downloadMib: 20_480,
      recordingMib: 20_480,
      uploadMib: 10_240,
      logMib: 10_240,
    },
    logLevel: 'info',
    apiKey: undefined,
    webhookAllowCidrs: [],
    webhookRule: { disableAfterMs: 120 * 3_600_000, silence: true },
    webhookRatePerS: 50,
    downloadDays: 30,
    sessionLogDays: 30,
    recordingDays: 31,
    eventDays: 30,
    auditDays: 365,
    logDays: 30,
    invocationDays: 90,
    buildDays: 90,
    sessionDays: 90,
    crashAt: undefined,
    searchUrl: undefined,
    network: undefined,
    tokens: { operator: undefined, gateway: undefined, runner: undefined },
    nextTokens: { operator: undefined, gateway: undefined, runner: undefined },
    bucket: undefined,
    database: undefined,
    databaseCaFile: undefined,
  });
});

const REFUSED: Record<string, Record<string, string>> = {
  'a short key': { TABERN_API_KEY: 'x'.repeat(23) },
  'a key that no header carries': { TABERN_API_KEY: `${'x'.repeat(23)}é` },
  'a database that is none': { TABERN_DATABASE_URL: 'mysql://127.0.0.1/tabern' },
  'a server without a database': { TABERN_DATABASE_URL: 'postgres://127.0.0.1' },
  'a direct database alone': { TABERN_DATABASE_DIRECT_URL: 'postgres://127.0.0.1/tabern' },
  'authorities of no database': { TABERN_DATABASE_CA_FILE: '/a.crt' },
  'authorities that cannot be read': {
    TABERN_DATABASE_URL: 'postgres://127.0.0.1/tabern',
    TABERN_DATABASE_CA_FILE: '/none.crt',
  },
  'authorities of a file that the URL names': {
    TABERN_DATABASE_URL: 'postgres://127.0.0.1/tabern?sslrootcert=/a.crt',
  },
  'an unknown durability': { TABERN_DURABILITY: 'off' },
  'a lease that is too short': { TABERN_LEASE_MS: '999' },
  'a network that is none': { TABERN_WEBHOOK_ALLOW_CIDRS: '10.0.0.0/33' },
  'a rule of no hours': { TABERN_WEBHOOK_DISABLE_AFTER: '0' },
  'a silence that is neither': { TABERN_WEBHOOK_DISABLE_SILENCE: 'no' },
  'a rate of nothing': { TABERN_WEBHOOK_RATE: '0' },
  'a network without TLS': { TABERN_CORE_LISTEN: '10.1.2.3:7447' },
  'a certificate without its key': { TABERN_CORE_TLS_CERT_FILE: '/a.crt' },
  'authorities without a certificate': { TABERN_CORE_CLIENT_CA_FILE: '/a.crt' },
  'a short token': { TABERN_RUNNER_TOKEN: 'x'.repeat(31) },
  'a crash point that is none': { TABERN_CRASH_AT: 'before-commit' },
  'a crash point in production': { TABERN_CRASH_AT: 'before-commit:1', NODE_ENV: 'production' },
};
for (const [name, env] of Object.entries(REFUSED)) {
  test(`${name} is refused`, () => {
    assert.throws(
      () => readCoreConfig(env),
      (error: unknown) => error instanceof ConfigError,
    );
  });
}

test('a key of 24 characters is accepted, and never printed', () => {
  const config = readCoreConfig({ TABERN_API_KEY: 'x'.repeat(24) });
  assert.is(config.apiKey, 'x'.repeat(24));
  assert.not(JSON.stringify(printable(config)).includes('xxx'));
});

test('tokens are never printed', () => {
  const env = { TABERN_RUNNER_TOKEN: 'y'.repeat(32), TABERN_GATEWAY_TOKEN_NEXT: 'y'.repeat(32) };
  const config = readCoreConfig(env);
  assert.is(config.nextTokens.gateway, 'y'.repeat(32));
  assert.not(JSON.stringify(printable(config)).includes('yyy'));
});

test('the secret of a bucket is never printed', () => {
  const place = { TABERN_BLOBS: 's3://abc/d', TABERN_BLOBS_ACCESS_KEY_ID: 'key' };
  const config = readCoreConfig({ ...place, TABERN_BLOBS_SECRET_ACCESS_KEY: 'hidden' });
  assert.is(config.bucket?.secretAccessKey, 'hidden');
  assert.not(JSON.stringify(printable(config)).includes('hidden'));
});

test('a database is accepted, and its password never printed', () => {
  const url = 'postgres://tabern:xxx@127.0.0.1:5432/tabern';
  const env = { TABERN_DATABASE_URL: url, TABERN_DATABASE_POOLED: 'on' };
  const expected = { url, directUrl: url, isPooled: true, ca: undefined };
  assert.equal(readCoreConfig(env).database, expected);
  assert.not(JSON.stringify(printable(readCoreConfig(env))).includes('xxx'));
});

test('a crash point is accepted outside production', () => {
  assert.is(readCoreConfig({ TABERN_CRASH_AT: 'before-commit:3' }).crashAt, 'before-commit:3');
});

test('the rule of the five days has settings for its duration and its silence', () => {
  const env = { TABERN_WEBHOOK_DISABLE_AFTER: '1', TABERN_WEBHOOK_DISABLE_SILENCE: 'off' };
  assert.equal(readCoreConfig(env).webhookRule, { disableAfterMs: 3_600_000, silence: false });
});

test.run();
