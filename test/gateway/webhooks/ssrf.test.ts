/**
 * Addresses that a tenant's URL may not reach: proto/spec/webhooks.md 8, tried on a real receiver
 * that must receive nothing. The names are resolved by a DNS server of the test.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { dnsResolver, openGuard } from '../../../gateway/webhooks/ssrf-guard.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { bootSend } from '../../support/core/send.ts';
import { startDns, type Zone } from '../../support/servers/dns.ts';

const ssrf = suite('gateway/webhooks/ssrf');

/** Addresses that are not public. */
const BLOCKED_IPV4 = [
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.127.255.255'],
  ...['127.0.0.1', '127.255.255.254', '169.254.0.1', '169.254.169.254', '172.16.0.1'],
  ...['172.31.255.255', '192.0.0.1', '192.0.0.170', '192.0.2.1', '192.31.196.1', '192.52.193.1'],
  ...['192.88.99.1', '192.168.0.1', '192.168.255.255', '192.175.48.1', '198.18.0.1'],
  ...['198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255'],
  ...['240.0.0.1', '255.255.255.255'],
];
const BLOCKED_IPV6 = [
  ...['::', '::1', '::ffff:7f00:1', '::ffff:a00:1', '::7f00:1', '64:ff9b::7f00:1'],
  ...['64:ff9b:1::1', '100::1', '2001::1', '2001:2::1', '2001:10::1', '2001:20::1'],
  ...['2001:db8::1', '2002:7f00:1::', '2620:4f:8000::1', '3fff::1', '4000::1', '5f00::1'],
  ...['fc00::1', 'fd12::1', 'fe80::1', 'fec0::1', 'ff02::1', 'ffff::1', '::2'],
];
/** Public ones, some of them neighbours of those above. */
const PUBLIC = [
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0'],
  ...['172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450::1', '2001:200::1'],
];
/** Ways to write a URL that ends at this machine or network; `:0` becomes the receiver's port. */
const SPELLINGS = [
  ...['https://127.0.0.1:0/', 'https://127.1:0/', 'https://127.0.1:0/', 'https://2130706433:0/'],
  ...['https://0x7f000001:0/', 'https://0x7f.1:0/', 'https://0177.0.0.1:0/'],
  ...['https://017700000001:0/', 'https://１２７.0.0.1:0/', 'https://127。0。0。1:0/'],
  ...['https://127.0.0.1.:0/', 'https://0:0/', 'https://0.0.0.0:0/', 'https://[::1]:0/'],
  ...['https://[::ffff:127.0.0.1]:0/', 'https://[::ffff:7f00:1]:0/', 'https://[::]:0/'],
  ...['https://localhost:0/', 'https://LOCALHOST.:0/', 'https://a.localhost:0/'],
  ...['https://ⓛocalhost:0/', 'https://%6c%6fcalhost:0/', 'https://user@127.0.0.1:0/'],
];

/** A sender that allows nothing but public addresses, and a receiver on loopback. */
async function boot(zone: Zone, allow: string[] = []) {
  await using opened = new AsyncDisposableStack();
  const dns = opened.use(await startDns(zone));
  const app = opened.use(await bootSend({ allow, resolve: dnsResolver([dns.server]) }));
  const port = new URL(app.receiver.url).port;
  const parts = opened.move();
  return { dns, ...app, port, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

ssrf('ssrf-matrix: the tables are as long as they should be', () => {
  const blocked = new Set([...BLOCKED_IPV4, ...BLOCKED_IPV6]);
  assert.equal([blocked.size, PUBLIC.length, SPELLINGS.length], [54, 11, 23]);
});

ssrf('ssrf-matrix: no address that is not public is reached, by name or literally', async () => {
  let answer = '';
  await using app = await boot(() => [answer]);
  for (answer of [...BLOCKED_IPV4, ...BLOCKED_IPV6]) {
    const host = answer.includes(':') ? `[${answer}]` : answer;
    for (const url of ['https://hook.example.com', `https://${host}`]) {
      const result = await app.post(`${url}:${app.port}/`);
      assert.is(result.outcome, 'BLOCKED', `${answer} by ${url}`);
      assert.is(result.error, 'address not allowed');
    }
  }
  assert.is(app.receiver.requests.length, 0);
});

ssrf('ssrf-matrix: public addresses go to the socket', async () => {
  let answer = '';
  await using dns = await startDns(() => [answer]);
  const guard = openGuard(cidrList([]), dnsResolver([dns.server]));
  for (answer of PUBLIC) {
    const host = answer.includes(':') ? `[${answer}]` : answer;
    guard.checkUrl(`https://${host}/`);
    guard.checkAddress(answer);
    const found = await new Promise((resolve) =>
      guard.lookup('hook.example.com', { all: true }, (error, list) => resolve(error ?? list)),
    );
    assert.equal(found, [{ address: answer, family: answer.includes(':') ? 6 : 4 }]);
  }
});

for (const spelling of SPELLINGS) {
  ssrf(`ssrf-matrix: ${spelling} is blocked before any connection`, async () => {
    await using app = await boot(() => ['127.0.0.1']);
    const result = await app.post(spelling.replace(':0/', `:${app.port}/`));
    assert.is(result.outcome, 'BLOCKED', result.error);
    assert.equal([app.receiver.requests.length, app.dns.asked.length], [0, 0]);
  });
}

ssrf('rebind: a name whose address changes after its check is checked again', async () => {
  let address = '127.0.0.1';
  await using app = await boot(() => [address], ['127.0.0.1/32']);
  const url = `https://hook.example.com:${app.port}/`;
  assert.is((await app.post(url)).outcome, 'OK');
  const asked = app.dns.asked.length;
  assert.is(asked, 2, 'A and AAAA, once: the socket gets what was checked');
  await new Promise(setImmediate); // its connection is free again
  address = '127.0.0.2';
  app.receiver.script((response) => response.writeHead(500, { connection: 'close' }).end());
  assert.is((await app.post(url)).outcome, 'HTTP', 'a connection that stands was checked');
  const rebound = await app.post(url);
  assert.is(rebound.outcome, 'BLOCKED');
  assert.is(app.receiver.requests.length, 2);
});

ssrf('rebind: an attempt resolves the name once, when the responses alternate', async () => {
  let turn = 0;
  const zone = (): string[] => (turn++ < 2 ? ['127.0.0.1'] : ['127.0.0.2']);
  await using app = await boot(zone, ['127.0.0.1/32']);
  assert.is((await app.post(`https://hook.example.com:${app.port}/`)).outcome, 'OK');
  assert.is(app.dns.asked.length, 2);
});

for (const answers of [
  ['127.0.0.1', '10.0.0.1'],
  ['10.0.0.1', '127.0.0.1'],
  ['127.0.0.1', 'fe80::1'],
  ['::1', '127.0.0.1'],
]) {
  ssrf(`mixed-answers: ${answers.join(' and ')} block the whole attempt`, async () => {
    await using app = await boot(() => answers, ['127.0.0.1/32']);
    const result = await app.post(`https://hook.example.com:${app.port}/`);
    assert.is(result.outcome, 'BLOCKED', result.error);
    assert.is(app.receiver.requests.length, 0);
  });
}

ssrf('literal-bypass: a literal address is checked, although it needs no lookup', async () => {
  await using app = await boot(() => ['127.0.0.1']);
  for (const host of ['127.0.0.1', '127.1', '2130706433', '[::ffff:127.0.0.1]']) {
    assert.is((await app.post(`https://${host}:${app.port}/`)).outcome, 'BLOCKED', host);
  }
  assert.equal([app.receiver.requests.length, app.dns.asked.length], [0, 0]);
  await using open = await boot(() => [], ['127.0.0.0/8']);
  assert.is(
    (await open.post(`https://127.0.0.1:${open.port}/`)).outcome,
    'OK',
    'the same, allowed',
  );
});

ssrf.run();
