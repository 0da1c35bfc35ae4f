/** The network settings of the operator's npm configuration, as npm and pnpm read them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readNpmSettings } from '../../../../runner/builds/install/npm-config.ts';
import { directory } from '../../../support/runner/project.ts';

const test = suite('runner/builds/install/npm-config');
const PUBLIC = ['registry.npmjs.org:443', 'npm.jsr.io:443'];

/** Reads the user's file, the global file and the environment. */
async function read(user: string, global = '', env: Record<string, string> = {}) {
  await using dir = directory({ user, global });
  const files = {
    npm_config_userconfig: `${dir.path}/user`,
    npm_config_globalconfig: `${dir.path}/global`,
  };
  const { registries, ...more } = await readNpmSettings({ ...files, ...env });
  return { ...more, registries: [...registries] };
}

test('without settings the registries are the public ones, without a proxy', async () => {
  assert.equal(await read(''), {
    registries: PUBLIC,
    namesJsr: false,
    noProxy: [],
    proxy: undefined,
    plainProxy: undefined,
  });
  assert.equal([...(await readNpmSettings({ HOME: '/no/such/home' })).registries], PUBLIC);
});

test('a default registry replaces the public one, those of scopes are added', async () => {
  const { registries, namesJsr } = await read(
    [
      '; a comment = https://comment.test/',
      '# registry = https://comment.test/',
      'registry = "https://Npm.Corp.test/all/"',
      '@mine:registry=http://10.0.0.5:4873/ ; of mine',
      "'@theirs:registry'='http://[fd00::5]/'",
      '@broken:registry=npm.corp.test',
      '//npm.corp.test/:_authToken=https://token.test/',
    ].join('\r\n'),
  );
  const named = ['npm.corp.test:443', 'npm.jsr.io:443', '10.0.0.5:4873', '[fd00::5]:80'];
  assert.equal(registries, named);
  assert.is(namesJsr, false);
});

test("the environment overrides the user's file, which overrides the global file", async () => {
  const [user, global] = ['registry=http://user.test', 'registry=http://global.test'];
  const env = { npm_config_registry: 'http://env.test:81' };
  assert.is((await read('', global)).registries[0], 'global.test:80');
  assert.is((await read(user, global)).registries[0], 'user.test:80');
  assert.is((await read(user, global, env)).registries[0], 'env.test:81');
});

test('a mirror of jsr replaces the public one', async () => {
  const { registries, namesJsr } = await read('@jsr:registry=http://mirror.test:8080/jsr/');
  assert.equal(registries, ['registry.npmjs.org:443', 'mirror.test:8080']);
  assert.is(namesJsr, true);
});

test('the proxy is https-proxy, proxy or HTTPS_PROXY, and HTTP_PROXY for http:', async () => {
  const proxies = 'proxy=http://b.test:1\nhttps-proxy = http://me:p\\#ss@a.test:1\n';
  const env = { HTTPS_PROXY: 'http://c.test', http_proxy: 'http://d.test', NO_PROXY: '.e.test, f' };
  const first = await read(proxies, '', env);
  assert.is(first.proxy, 'http://me:p#ss@a.test:1');
  assert.equal(first.noProxy, ['e.test', 'f']);
  assert.is((await read('proxy=http://b.test:1', '', env)).proxy, 'http://b.test:1');
  const fromEnv = await read('proxy=null\nhttps-proxy=false\nnoproxy=g.test', '', env);
  assert.is(fromEnv.proxy, 'http://c.test');
  assert.is(fromEnv.plainProxy, 'http://d.test');
  assert.equal(fromEnv.noProxy, ['g.test']);
});

test.run();
