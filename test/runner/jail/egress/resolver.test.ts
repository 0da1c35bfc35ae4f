/** The addresses of a name, and whether they may be dialled. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { checkHost, ownAddresses, remembering } from '../../../../runner/jail/egress/resolver.ts';

const names = suite('runner/jail/egress/resolver');

names(
  "this machine's own public addresses are closed, unless the operator opens them",
  async () => {
    const own = cidrList(['8.8.8.8', '2606:4700::1111']);
    const resolve = async () => ['1.1.1.1', '8.8.8.8'];
    const closed = { allow: cidrList([]), resolve, own };
    const opened = { ...closed, allow: cidrList(['8.8.8.8/32']) };
    for (const host of ['8.8.8.8', '[::ffff:8.8.8.8]', '[2606:4700::1111]', 'one.of.ours']) {
      assert.is((await checkHost(host, closed)).kind, 'denied', host);
    }
    assert.is((await checkHost('1.1.1.1', closed)).kind, 'allowed');
    assert.is((await checkHost('one.of.ours', opened)).kind, 'allowed');
    assert.ok(ownAddresses().check('127.0.0.1', 'ipv4'));
  },
);

names('a name is resolved once per cache time, and again after a failure', async () => {
  let at = 0;
  const asked: string[] = [];
  const resolve = remembering(
    async (name) => {
      asked.push(name);
      if (name === 'broken.test') throw new Error('no server');
      return name === 'far.test' ? ['1.1.1.1'] : [];
    },
    5_000,
    () => at,
  );
  assert.equal(await Promise.all([resolve('far.test'), resolve('far.test')]), [
    ['1.1.1.1'],
    ['1.1.1.1'],
  ]);
  at = 4_999;
  await resolve('far.test');
  assert.equal(asked, ['far.test']);
  at = 5_001;
  await resolve('far.test');
  assert.is(asked.length, 2);
  for (const name of ['none.test', 'none.test', 'broken.test', 'broken.test']) {
    await resolve(name).catch(() => {});
  }
  assert.is(asked.length, 6);
});

names('localhost resolves to the loopback addresses that the operator opened', async () => {
  const own = ownAddresses();
  const resolve = async () => {
    throw new Error('no name server is asked');
  };
  const six = await checkHost('localhost', { allow: cidrList(['::1/128']), resolve, own });
  assert.equal(six, { kind: 'allowed', addresses: ['::1'] });
  assert.is((await checkHost('a.localhost', { allow: cidrList([]), resolve, own })).kind, 'denied');
});

names.run();
