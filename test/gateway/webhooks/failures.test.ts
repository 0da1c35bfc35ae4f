/** Failed connections: trust, addresses, names. With a real TLS receiver on loopback. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bootSend } from '../../support/core/send.ts';

const failures = suite('gateway/webhooks/failures');

failures('an untrusted certificate is named, and nothing is sent', async () => {
  await using app = await bootSend({ isTrusted: false });
  const result = await app.post();
  assert.is(result.outcome, 'TLS');
  assert.match(result.error, /^the certificate (is of an unknown authority|chain is self-signed)/);
  assert.equal(app.receiver.requests, []);
});

failures('NODE_TLS_REJECT_UNAUTHORIZED does not turn verification off', async () => {
  await using app = await bootSend({ isTrusted: false });
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  try {
    assert.is((await app.post()).outcome, 'TLS');
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  }
});

failures('a certificate for another name is named', async () => {
  await using app = await bootSend({ resolve: async () => ['127.0.0.1'] });
  const result = await app.post(app.receiver.url.replace('127.0.0.1', 'elsewhere.example.com'));
  assert.equal([result.outcome, result.error], ['TLS', 'the certificate is for another name']);
});

failures('localhost reaches a receiver on loopback when the list covers it', async () => {
  await using app = await bootSend();
  const result = await app.post(app.receiver.url.replace('127.0.0.1', 'localhost'));
  assert.is(result.outcome, 'OK');
});

for (const host of ['127.0.0.1', 'localhost', 'name.example.com']) {
  failures(`${host} on loopback is blocked without the list, and nothing is sent`, async () => {
    await using app = await bootSend({ allow: [], resolve: async () => ['127.0.0.1'] });
    const result = await app.post(app.receiver.url.replace('127.0.0.1', host));
    assert.equal([result.outcome, result.error], ['BLOCKED', 'address not allowed']);
    assert.equal(app.receiver.requests, []);
  });
}

failures(
  'a name without an address and a port without a listener have different errors',
  async () => {
    await using app = await bootSend({ resolve: async () => [] });
    assert.is((await app.post('https://nowhere.example.com/')).outcome, 'DNS');
    const result = await app.post('https://127.0.0.1:1025/');
    assert.equal([result.outcome, result.error], ['CONNECT', 'the connection was refused']);
  },
);

failures.run();
