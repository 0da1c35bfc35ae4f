/** Addresses of session servers: which a runner may register, by its own connection. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { checkAddress } from '../../../core/runners/holders.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { openScope } from '../../../proto/rpc/local.ts';
import { peerOf } from '../../../proto/rpc/peer.ts';

const test = suite('core/runners/holders');

/** Whether a caller at that address may register the other one. */
function isAccepted(address: string, from: string | undefined): boolean {
  const call = { getPeer: () => `${from}:40000`, getAuthContext: () => ({}) };
  const peer = from === undefined ? undefined : peerOf(call, false);
  const scope = openScope({ peer });
  try {
    checkAddress(address, scope.call);
    return true;
  } catch (error) {
    assert.ok(error instanceof Fault && error.facts['field'] === 'address', String(error));
    return false;
  } finally {
    scope.close();
  }
}

const OF_THIS_MACHINE = ['unix:/run/s.sock', '127.0.0.1:7448', 'localhost:1', 'tls:127.0.0.1:1'];
const NOT_REMOTE = ['tls:[::1]:1', 'tls:169.254.169.254:80', 'tls:0.0.0.0:1', 'tls:127.1:1'];
const DISGUISED = ['tls:a@127.0.0.1:1', 'tls:127.0.0.1#:1', 'tls:[::ffff:127.0.0.1]:1'];
const REMOTE = ['tls:10.0.0.6:7448', 'tls:runner-1.internal:7448', 'tls:[fd00::6]:7448'];

test('a runner of this machine registers any address', () => {
  for (const from of [undefined, '127.0.0.1', '127.0.0.3', '::1', '::ffff:127.0.0.1']) {
    for (const address of [...OF_THIS_MACHINE, ...NOT_REMOTE, ...REMOTE]) {
      assert.is(isAccepted(address, from), true, `${from}: ${address}`);
    }
  }
});

test('a runner of another machine registers no address of the gateways’ machines', () => {
  for (const from of ['10.0.0.9', 'fd00::9', '::ffff:10.0.0.9', '']) {
    for (const address of [...OF_THIS_MACHINE, ...NOT_REMOTE, ...DISGUISED]) {
      assert.is(isAccepted(address, from), false, `${from}: ${address}`);
    }
    for (const address of REMOTE) assert.is(isAccepted(address, from), true, address);
  }
});

test.run();
