/**
 * The network of an install: the operator's registries, also private ones, and public addresses.
 * All servers of this test are on loopback, which is closed except for the operator's settings.
 */
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { must } from '../../../../proto/common/must.ts';
import { openPlace } from '../../../../runner/builds/build-directory.ts';
import { openInstallEgress } from '../../../../runner/builds/install/egress.ts';
import { installSpec } from '../../../../runner/builds/install/jail.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { type build, buildOf, DEFINES } from '../../../support/runner/build.ts';
import { directory } from '../../../support/runner/project.ts';
import { authority } from '../../../support/servers/certificates.ts';
import { startHttpProxy } from '../../../support/servers/proxies.ts';
import { openRegistry, type Registry } from '../../../support/servers/registry.ts';

const builds = suite('runner/builds/install/network');
const ONE = { one: '1.2.3' };
const USES_ONE = `import { name } from 'one'; ${DEFINES} console.debug(name)`;
const MANIFEST = { 'index.ts': USES_ONE, 'package.json': '{"dependencies": {"one": "1.2.3"}}' };
const ME = { username: 'me', password: 'p:ss' };
const log = openLog({ role: 'test', level: 'silent' });

type Change = Parameters<typeof build>[1];

/** npm with the operator's settings and none of this machine. */
async function built(
  files: Record<string, string>,
  settings: string[],
  { env: more = {}, ...change }: Change = {},
) {
  await using dir = directory({ npmrc: [...settings, 'fetch-retries=0', ''].join('\n') });
  const { PATH = '', npm_execpath } = process.env;
  const npm = npm_execpath === undefined ? {} : { npm_execpath };
  const env = { PATH, ...npm, HOME: dir.path, npm_config_userconfig: `${dir.path}/npmrc`, ...more };
  return await buildOf(files, { ...change, env });
}

/** A lock file with that registry's tarball. */
type Lock = (registry: Registry) => Record<string, string>;

const npmLock: Lock = (registry) => {
  const resolved = registry.tarballOf('one');
  const packages = {
    '': { dependencies: { one: '1.2.3' } },
    'node_modules/one': { version: '1.2.3', resolved, integrity: registry.integrityOf('one') },
  };
  return { 'package-lock.json': JSON.stringify({ lockfileVersion: 3, requires: true, packages }) };
};

const pnpmLock: Lock = (registry) => ({
  'pnpm-lock.yaml': [
    "lockfileVersion: '9.0'",
    'importers:',
    '  .:',
    '    dependencies:',
    '      one: {specifier: 1.2.3, version: 1.2.3}',
    'packages:',
    '  one@1.2.3:',
    '    resolution:',
    `      tarball: ${registry.tarballOf('one')}`,
    `      integrity: ${registry.integrityOf('one')}`,
    'snapshots:',
    '  one@1.2.3: {}',
    '',
  ].join('\n'),
});

const LOCKS = { npm: npmLock, pnpm: pnpmLock };

for (const [sandbox, name] of [
  ['auto', 'npm'],
  ['auto', 'pnpm'],
  ['landlock', 'npm'],
  ['landlock', 'pnpm'],
] as const) {
  builds(`${sandbox}: ${name}: a private address in a lock file receives no request`, async () => {
    await using registry = await openRegistry(ONE);
    await using inner = await openRegistry(ONE);
    const files = { ...MANIFEST, ...LOCKS[name](inner) };
    const { text, failure } = await built(files, [`registry=${registry.url}`], { sandbox });
    assert.equal(inner.asked, [], text);
    assert.is(failure?.code, 'BUILD_ERROR', text);
    assert.match(text, `warn 127.0.0.1:${inner.port} is not reachable from here`);
    assert.match(failure?.message ?? '', /closed to builds: .*put its tarball into the project/);
  });

  builds(`${sandbox}: ${name}: the operator's registry on loopback is used`, async () => {
    await using registry = await openRegistry(ONE);
    const files = { ...MANIFEST, ...LOCKS[name](registry) };
    const { text, success } = await built(files, [`registry=${registry.url}`], { sandbox });
    assert.is(success?.manifests.length, 1, text);
    assert.equal(registry.asked.includes('/one/-/x.tgz'), true);
  });
}

for (const [name, lock] of Object.entries(LOCKS)) {
  builds(`${name}: a private address in a registry’s answer receives no request`, async () => {
    await using inner = await openRegistry(ONE);
    await using registry = await openRegistry(ONE, { redirect: inner.tarballOf('one') });
    const files = { ...MANIFEST, ...lock(registry) };
    const { text, failure } = await built(files, [`registry=${registry.url}`]);
    assert.equal(registry.asked.includes('/one/-/x.tgz'), true, text);
    assert.equal(inner.asked, [], text);
    assert.match(failure?.message ?? '', 'closed to builds');
  });

  builds(`${name}: an install uses the operator's proxy and certificate authority`, async () => {
    const { cert, issue } = await authority();
    const tls = await issue({ names: ['npm.invalid'] });
    await using registry = await openRegistry(ONE, { tls, host: 'npm.invalid' });
    await using proxy = await startHttpProxy(registry.port, ME);
    await using files = directory({ 'ca.pem': cert });
    const env = { NODE_EXTRA_CA_CERTS: join(files.path, 'ca.pem') };
    const { text, success } = await built(
      { ...MANIFEST, ...lock(registry) },
      [`registry=${registry.url}`, `https-proxy=http://me:p%3Ass@${proxy.address}`],
      { env },
    );
    assert.is(success?.manifests.length, 1, text);
    assert.equal(new Set(proxy.asked), new Set(['CONNECT npm.invalid:443']));
    assert.equal(registry.asked.includes('/one/-/x.tgz'), true);
  });
}

builds('none: a private address in a lock file receives no request', async () => {
  await using inner = await openRegistry(ONE);
  const { failure } = await built({ ...MANIFEST, ...npmLock(inner) }, [], { sandbox: 'none' });
  assert.equal(inner.asked, []);
  assert.match(failure?.message ?? '', 'closed to builds');
});

/** The addresses and files that an installer reaches. */
const LOOK = `
const { connect } = require('node:net');
const over = (act) => new Promise((resolve) => act().on('error', ({ code }) => resolve(code))
  .on('connect', () => resolve('done')).on('response', (it) => resolve(it.statusCode)));
const sent = () => new Promise((resolve) => {
  try {
    require('node:dgram').createSocket('udp4').on('error', ({ code }) => resolve(code))
      .send('x', 9, '10.0.0.1', (error) => resolve(error ? error.code : 'done'));
  } catch ({ code }) { resolve(code); }
});
(async () => {
  const [, , port] = process.argv;
  const { hostname, port: proxy } = new URL(process.env.http_proxy);
  const path = 'http://127.0.0.1:' + port + '/one';
  require('node:fs').writeFileSync('a', '');
  require('node:fs').chmodSync('a', 0o755);
  console.log(JSON.stringify({
    proxy: await over(() => require('node:http').get({ hostname, port: proxy, path })),
    loopback: await over(() => connect(port, '127.0.0.1')),
    private: await over(() => connect(80, '10.0.0.1')),
    file: await over(() => connect('/run/x.sock')),
    udp: await sent(),
    child: require('node:child_process').spawnSync(process.execPath, ['-e', '0']).error?.code,
  }));
  process.exit();
})();
`;
const SEEN = {
  bwrap: { loopback: 'ECONNREFUSED', private: 'ENETUNREACH', file: 'ENOENT', udp: 'ENETUNREACH' },
  landlock: { loopback: 'EACCES', private: 'EACCES', file: 'EAFNOSUPPORT', udp: 'EAFNOSUPPORT' },
};

for (const sandbox of ['bwrap', 'landlock'] as const) {
  builds(`${sandbox}: an installer reaches its proxy and no other address`, async () => {
    await using registry = await openRegistry(ONE);
    const jail = await openJail({ sandbox, log });
    await using dir = directory({ 'program/look.cjs': LOOK });
    await using place = await openPlace(join(dir.path, 'builds'), jail);
    const lines = { line: () => undefined };
    await using egress = await openInstallEgress({ jail, env: {}, place, lines, log });
    const installer = { file: join(dir.path, 'program/look.cjs'), args: [String(registry.port)] };
    const spec = await installSpec(installer, { place, env: {}, egress });
    const { child, exited } = jail.launch(spec);
    const said = await textOf(must(child.stdout, 'stdout'));
    assert.is((await exited).code, 0);
    assert.equal(JSON.parse(said), { proxy: 403, ...SEEN[sandbox], child: 'EPERM' });
    assert.equal(registry.asked, []);
  });
}

builds.run();
