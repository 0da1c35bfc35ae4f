/** Signatures, read by the published library of Standard Webhooks. */

import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { signatureHeaders, writeSecret } from '../../../core/delivery/sign.ts';

const sign = suite('core/delivery/sign');
const id = '019a7d3e-0000-7000-8000-000000000001';
const now = () => Math.floor(Date.now() / 1_000);
const body = Buffer.from('{"id":"x","text":"grüße \\u2028 🦊"}');

sign('signing-vectors: the signature equals the vector of the specification', () => {
  const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');
  const signed = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampS: 1_614_265_330 };
  const headers = signatureHeaders({ ...signed, body: Buffer.from('{"test": 2432232314}') }, [key]);
  assert.equal(headers, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

sign('a receiver with the secret accepts the signature', () => {
  const key = Buffer.alloc(24, 7);
  const headers = signatureHeaders({ id, timestampS: now(), body }, [key]);
  assert.equal(new Webhook(writeSecret(key)).verify(body, headers), JSON.parse(body.toString()));
});

sign('signature-two-secrets-in-overlap: either secret verifies, the newest first', () => {
  const [newest, older] = [Buffer.alloc(24, 1), Buffer.alloc(24, 2)];
  const headers = signatureHeaders({ id, timestampS: now(), body }, [newest, older]);
  for (const key of [newest, older]) new Webhook(writeSecret(key)).verify(body, headers);
  const [first] = (headers['webhook-signature'] ?? '').split(' ');
  new Webhook(writeSecret(newest)).verify(body, { ...headers, 'webhook-signature': first ?? '' });
});

for (const [what, change] of [
  ['another body', { body: Buffer.from('{"id":"y"}') }],
  ['another id', { id: 'other' }],
  ['an old timestamp', { timestampS: now() - 301 }],
] as const) {
  sign(`a receiver refuses ${what}`, () => {
    const key = Buffer.alloc(24, 7);
    const signed = { id, timestampS: now(), body };
    const headers = signatureHeaders(
      what === 'an old timestamp' ? { ...signed, ...change } : signed,
      [key],
    );
    const got = { ...headers, ...('id' in change ? { 'webhook-id': change.id } : {}) };
    assert.throws(
      () => new Webhook(writeSecret(key)).verify('body' in change ? change.body : body, got),
      (error: unknown) => error instanceof WebhookVerificationError,
    );
  });
}

sign.run();
