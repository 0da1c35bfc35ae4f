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
  });
});

const REFUSED: Record<string, Record<string, string>> = {
  'a short key': { TABERN_API_KEY: 'x'.repeat(23) },
  'a key that no header carries': { TABERN_API_KEY: `${'x'.repeat(23)}é` },
  'an unknown durability': { TABERN_DURABILITY: 'off' },
  'a lease that is too short': { TABERN_LEASE_MS: '999' },
  'a network that is none': { TABERN_WEBHOOK_ALLOW_CIDRS: '10.0.0.0/33' },
  'a rule of no hours': { TABERN_WEBHOOK_DISABLE_AFTER: '0' },
  'a silence that is neither': { TABERN_WEBHOOK_DISABLE_SILENCE: 'no' },
  'a rate of nothing': { TABERN_WEBHOOK_RATE: '0' },
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

test('a crash point is accepted outside production', () => {
  assert.is(readCoreConfig({ TABERN_CRASH_AT: 'before-commit:3' }).crashAt, 'before-commit:3');
});

test('the rule of the five days has settings for its duration and its silence', () => {
  const env = { TABERN_WEBHOOK_DISABLE_AFTER: '1', TABERN_WEBHOOK_DISABLE_SILENCE: 'off' };
  assert.equal(readCoreConfig(env).webhookRule, { disableAfterMs: 3_600_000, silence: false });
});

test.run();
