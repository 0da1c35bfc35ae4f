/** Hosts that only this machine may have, in each spelling. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isRemote } from '../../../proto/network/loopback.ts';

const test = suite('proto/network/loopback');

test('another machine may have a name or an address of a network', () => {
  for (const host of [
    ...['runner-1', 'r1.runners.internal', 'localhost.example.com', '10.0.0.6', '192.168.1.2'],
    ...['100.64.0.1', 'fd00::1', '2001:db8::1', '::ffff:10.0.0.6'],
  ]) {
    assert.is(isRemote(host), true, host);
  }
});

test('loopback, link-local, unspecified and multicast hosts are no other machine’s', () => {
  for (const host of [
    ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', '127.0.0.1', '127.9.9.9', '127.1'],
    ...['2130706433', '0x7f000001', '0177.0.0.1', '0.0.0.0', '0', '169.254.169.254', '224.0.0.1'],
    ...['255.255.255.255', '::', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
    ...['fe80::1', 'fe80::1%eth0', 'ff02::1', '', 'a b', 'user@10.0.0.6', '10.0.0.6#', '*'],
  ]) {
    assert.is(isRemote(host), false, host);
  }
});

test.run();
