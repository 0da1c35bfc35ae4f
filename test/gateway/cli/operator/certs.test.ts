/** `tabern certs`: what it writes, and that it overwrites nothing. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newAuthority } from '../../../../gateway/cli/operator/issue.ts';
import { tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/operator/certs');
const DAY_MS = 86_400_000;

function open() {
  const temp = tempDirectory();
  const dir = join(temp.path, 'certs');
  const run = (...words: string[]) => tabern(['certs', ...words, '--dir', dir], {}).ended;
  const read = (...path: string[]) => readFileSync(join(dir, ...path), 'utf8');
  const certOf = (name: string) => new X509Certificate(read(name, 'tls.crt'));
  const close = () => temp[Symbol.asyncDispose]();
  return { dir, run, read, certOf, [Symbol.asyncDispose]: close };
}

test('a pair is issued for its name and hosts, and readable by its owner', async () => {
  await using app = open();
  const made = await app.run(
    'create',
    'core',
    '--host',
    'core.internal,10.0.0.5,*.a_b.internal,fd00::5',
    '--days',
    '30',
  );
  assert.is(made.code, 0, made.err);
  assert.is(made.out, `${join(app.dir, 'core')}\n`);
  const cert = app.certOf('core');
  const authority = new X509Certificate(app.read('ca', 'ca.crt'));
  assert.ok(cert.verify(authority.publicKey));
  assert.ok(cert.checkPrivateKey(createPrivateKey(app.read('core', 'tls.key'))));
  assert.is(app.read('core', 'ca.crt'), app.read('ca', 'ca.crt'));
  assert.equal(cert.subjectAltName?.split(', '), [
    ...['DNS:core', 'DNS:core.internal', 'IP Address:10.0.0.5'],
    ...['DNS:*.a_b.internal', 'IP Address:FD00:0:0:0:0:0:0:5'],
  ]);
  assert.equal([cert.ca, authority.ca], [false, true]);
  const days = (Date.parse(cert.validTo) - Date.now()) / DAY_MS;
  assert.ok(days > 29 && days < 31, String(days));
  for (const name of ['ca', 'core']) {
    assert.is(statSync(join(app.dir, name)).mode & 0o777, 0o700);
    for (const file of readdirSync(join(app.dir, name))) {
      assert.is(statSync(join(app.dir, name, file)).mode & 0o777, 0o600, file);
    }
  }
});

test('nothing is overwritten; renew keeps the key and the names', async () => {
  await using app = open();
  assert.is((await app.run('create', 'runner-0', '--host', '10.0.0.6')).code, 0);
  const [before, authority] = [app.certOf('runner-0'), app.read('ca', 'ca.key')];
  const again = await app.run('create', 'runner-0');
  assert.equal([again.code, again.out], [1, '']);
  assert.match(again.err, /runner-0 exists: `tabern certs renew runner-0` renews it/);
  assert.is(app.certOf('runner-0').serialNumber, before.serialNumber);
  assert.is((await app.run('renew', 'runner-0')).code, 0);
  const after = app.certOf('runner-0');
  assert.is.not(after.serialNumber, before.serialNumber);
  assert.is(after.subjectAltName, before.subjectAltName);
  assert.ok(after.checkPrivateKey(createPrivateKey(app.read('runner-0', 'tls.key'))));
  assert.ok(after.publicKey.equals(before.publicKey));
  assert.is((await app.run('create', 'gateway')).code, 0);
  assert.is(app.read('ca', 'ca.key'), authority, 'one authority');
  const { out } = await app.run('list', '--json');
  assert.equal(
    JSON.parse(out).map(({ names }: { names: string[] }) => names),
    [['gateway'], ['runner-0', '10.0.0.6']],
  );
});

test('an authority that is not valid now issues nothing', async () => {
  for (const [days, pattern] of [
    [-3_651, /the authority in .*\/ca was valid until \S+: .* create a certificate for each role/],
    [2, /the authority in .*\/ca is valid from \S+: check the clock/],
  ] as const) {
    await using app = open();
    assert.is((await app.run('create', 'core')).code, 0);
    const before = app.certOf('core').serialNumber;
    const { cert, key } = await newAuthority(Date.now() + days * DAY_MS);
    mkdirSync(join(app.dir, 'ca'), { recursive: true });
    writeFileSync(join(app.dir, 'ca', 'ca.crt'), cert);
    writeFileSync(join(app.dir, 'ca', 'ca.key'), key);
    for (const words of [
      ['create', 'gateway'],
      ['renew', 'core'],
    ]) {
      const { code, out, err } = await app.run(...words);
      assert.equal([code, out], [1, ''], words.join(' '));
      assert.match(err, pattern);
    }
    assert.is(app.certOf('core').serialNumber, before);
    assert.is(existsSync(join(app.dir, 'gateway')), false);
  }
});

test('other words are refused, and leave nothing', async () => {
  await using app = open();
  for (const [words, pattern] of [
    [['create', 'ca'], /not ca/],
    [['create', '../x'], /the name must be/],
    [['create', 'core', '--host', 'a b'], /--host must be/],
    [['create', 'core', '--host', '10.0.0.5:7447'], /--host must be .* without ports/],
    [['create', 'core', '--host', 'core.internal,10.0.0.256'], /--host must be/],
    [['create', 'core', '--host', 'a.*.internal'], /--host must be/],
    [['create', 'core', '--host', '*.runner'], /--host must be .* two labels after it/],
    [['create', 'core', '--days', '0'], /--days must be/],
  ] as const) {
    const { code, err } = await app.run(...words);
    assert.is(code, 2, words.join(' '));
    assert.match(err, pattern);
  }
  const missing = await app.run('renew', 'core');
  assert.is(missing.code, 1);
  assert.match(missing.err, /cannot read .*core\/tls\.crt/);
  assert.is((await app.run('list', '--json')).out, '[]\n');
});

test.run();
