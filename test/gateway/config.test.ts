import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gatewayConfig } from '../../gateway/config.ts';
import { ConfigError } from '../../proto/common/env.ts';

const test = suite('gateway/config');

test('the defaults are loopback, 4747 and core’s socket', () => {
  const config = gatewayConfig({ TABERN_DATA: '/srv/t' });
  assert.is(config.host, '127.0.0.1');
  assert.is(config.port, 4747);
  assert.is(config.core, 'unix:/srv/t/core.sock');
  assert.is(config.publicUrl, undefined);
  assert.is(config.webhookAllow.check('127.0.0.1'), false);
});

test('a variable sets the core address', () => {
  assert.is(gatewayConfig({ TABERN_CORE: 'unix:/a' }).core, 'unix:/a');
});

test('a public URL loses its last slash and keeps its path', () => {
  const url = (text: string) => gatewayConfig({ TABERN_PUBLIC_URL: text }).publicUrl;
  assert.is(url('https://tabern.example/'), 'https://tabern.example');
  assert.is(url('https://example.com/api/'), 'https://example.com/api');
});

test('blocks that webhooks may reach are read', () => {
  const { webhookAllow } = gatewayConfig({ TABERN_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8, ::1' });
  assert.ok(webhookAllow.check('127.0.0.1') && webhookAllow.check('::1', 'ipv6'));
});

const WRONG: [string, string][] = [
  ['TABERN_PORT', '70000'],
  ['TABERN_PORT', 'http'],
  ['TABERN_PUBLIC_URL', 'tabern.example'],
  ['TABERN_PUBLIC_URL', 'ftp://tabern.example'],
  ['TABERN_WEBHOOK_CA', '/nowhere/ca.pem'],
  ['TABERN_TLS_CERT_FILE', '/alone/cert.pem'],
  ['TABERN_METRICS_LISTEN', 'localhost'],
  ['TABERN_WEBHOOK_ALLOW_CIDRS', '127.0.0.0/33'],
  ['TABERN_LOG_LEVEL', 'loud'],
];

test('the error of an invalid variable names it', () => {
  for (const [name, value] of WRONG) {
    assert.throws(
      () => gatewayConfig({ [name]: value }),
      (error: unknown) => error instanceof ConfigError && error.message.startsWith(name),
      `${name}=${value}`,
    );
  }
});

test.run();
