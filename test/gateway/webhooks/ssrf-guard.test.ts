/**
 * Addresses to which the sender may connect: proto/spec/webhooks.md 8. The DNS responses are
 * scripted.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BlockedAddress, openGuard, UnresolvedName } from '../../../gateway/webhooks/ssrf-guard.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';

const guardSuite = suite('gateway/webhooks/ssrf-guard');
const PUBLIC = '93.184.216.34';

const BLOCKED = [
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.127.255.255'],
  ...['127.0.0.1', '127.255.255.254', '169.254.0.1', '169.254.169.254', '172.16.0.1'],
  ...['172.31.255.255', '192.0.0.1', '192.0.0.170', '192.0.2.1', '192.31.196.1', '192.52.193.1'],
  ...['192.88.99.1', '192.168.0.1', '192.168.255.255', '192.175.48.1', '198.18.0.1'],
  ...['198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255'],
  ...['240.0.0.1', '255.255.255.255', '::', '::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1'],
  ...['::ffff:7f00:1', '::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001::1'],
  ...['2001:0:1::1', '2001:2::1', '2001:10::1', '2001:20::1', '2001:db8::1', '2002:7f00:1::'],
  ...['2620:4f:8000::1', '3fff::1', '4000::1', '5f00::1', 'fc00::1', 'fd12::1', 'fe80::1'],
  ...['fe80::1%eth0', 'fec0::1', 'ff02::1', 'ffff::1', 'not an address', ''],
];

type Answer = { address: string; family: number }[];

/** The addresses for the socket of `name` when DNS returns `addresses`. */
function lookup(addresses: string[], name = 'example.com', allow: string[] = []): Promise<Answer> {
  const guard = openGuard(cidrList(allow), async () => addresses);
  return new Promise((resolve, reject) => {
    guard.lookup(name, { all: true }, (error, answer) => {
      if (error) reject(error);
      else resolve(answer as Answer);
    });
  });
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

guardSuite('the socket receives the public addresses that were checked', async () => {
  assert.equal(await lookup([PUBLIC, '2606:4700::1111']), [
    { address: PUBLIC, family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ]);
});

for (const address of BLOCKED) {
  guardSuite(`an answer of "${address}" blocks, alone and beside a public one`, async () => {
    for (const answers of [[address], [PUBLIC, address], [address, PUBLIC]]) {
      const error = await rejection(lookup(answers));
      assert.instance(error, BlockedAddress);
      assert.is((error as Error).message, 'address not allowed');
    }
  });
}

guardSuite("the operator's list allows its blocks, and no more", async () => {
  assert.is((await lookup(['10.0.0.7'], 'lan.example', ['10.0.0.0/24'])).length, 1);
  assert.instance(await rejection(lookup(['10.0.1.7'], 'x.y', ['10.0.0.0/24'])), BlockedAddress);
});

guardSuite('a name without an address, or with too many, does not resolve', async () => {
  assert.instance(await rejection(lookup([])), UnresolvedName);
  const many = Array.from({ length: 17 }, (_, n) => `93.184.216.${n}`);
  assert.instance(await rejection(lookup(many)), UnresolvedName);
  assert.is((await lookup(many.slice(1))).length, 16);
});

guardSuite('localhost is resolved without DNS, as far as the list allows it', async () => {
  const both = await lookup([PUBLIC], 'localhost', ['127.0.0.0/8', '::1']);
  assert.equal(
    both.map(({ address }) => address),
    ['127.0.0.1', '::1'],
  );
  assert.is((await lookup([PUBLIC], 'localhost', ['127.0.0.0/8'])).length, 1);
  assert.instance(await rejection(lookup([PUBLIC], 'localhost')), BlockedAddress);
});

guardSuite('a lookup of one address returns the first', async () => {
  const guard = openGuard(cidrList([]), async () => [PUBLIC, '8.8.8.8']);
  const got = await new Promise<unknown[]>((resolve) => {
    guard.lookup('example.com', {}, (...answer) => resolve(answer));
  });
  assert.equal(got, [null, PUBLIC, 4]);
});

guardSuite('a URL is checked before the request: literal addresses never reach the lookup', () => {
  const guard = openGuard(cidrList(['127.0.0.0/8']));
  guard.checkUrl('https://127.0.0.1:8443/');
  for (const url of ['https://10.0.0.1/', 'https://[::1]/', 'http://127.0.0.1/', 'https://x']) {
    assert.throws(() => guard.checkUrl(url), 'address not allowed');
  }
});

guardSuite('the address of a connected socket is checked, too', () => {
  const guard = openGuard(cidrList([]));
  guard.checkAddress(PUBLIC);
  for (const address of ['127.0.0.1', '::ffff:127.0.0.1', undefined]) {
    assert.throws(() => guard.checkAddress(address), 'address not allowed');
  }
});

guardSuite.run();
