import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { networkOf } from '../../../gateway/http/connections.ts';

const test = suite('gateway/http/connections');

test('an IPv4 address is a network, also mapped to IPv6', () => {
  assert.is(networkOf('192.0.2.7'), '192.0.2.7');
  assert.is(networkOf('::ffff:192.0.2.7'), '192.0.2.7');
});

test('the addresses of one /64 are one network', () => {
  assert.is(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2');
  assert.is(networkOf('2001:db8:1:2::6'), '2001:db8:1:2');
  assert.is(networkOf('2001:db8::6'), '2001:db8:0:0');
  assert.is(networkOf('::1'), '0:0:0:0');
  assert.is(networkOf('fe80::1%eth0'), 'fe80:0:0:0');
});

test.run();
