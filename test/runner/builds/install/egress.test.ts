/** The egress of an installer's jail: its open addresses and its proxy. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { BuildFailure } from '../../../../runner/builds/build-failure.ts';
import { openInstallEgress } from '../../../../runner/builds/install/egress.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { directory } from '../../../support/runner/project.ts';
import { startHttpProxy } from '../../../support/servers/proxies.ts';
import { openRegistry } from '../../../support/servers/registry.ts';

const test = suite('runner/builds/install/egress');
const log = openLog({ role: 'test', level: 'silent' });
const ME = { username: 'me', password: 'p:ss' };

/** The egress with these lines in the operator's npmrc; on loopback, without a jail. */
async function openLab(settings: string[], more: Record<string, string> = {}) {
  const home = directory({ '.npmrc': settings.join('\n') });
  const said: string[] = [];
  const egress = await openInstallEgress({
    jail: await openJail({ sandbox: 'none', log }),
    env: { HOME: home.path, ...more },
    lines: { line: (level, text) => void said.push(`${level} ${text}`) },
    place: { directory: home.path, uid: undefined },
    log,
  });
  const port = Number(egress.localPort);
  return {
    egress,
    said,
    async get(url: string): Promise<string> {
      const asking = request({ port, path: url, headers: { host: new URL(url).host } }).end();
      const [answer] = await once(asking, 'response');
      let text = '';
      for await (const part of answer) text += String(part);
      return `${answer.statusCode} ${text}`;
    },
    /** The status of a tunnel. */
    async tunnel(authority: string): Promise<string> {
      const socket = connect(port, '127.0.0.1');
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
      const [head] = await once(socket, 'data');
      socket.destroy();
      return String(head).slice(9, 12);
    },
    async [Symbol.asyncDispose]() {
      await egress[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

test("the operator's registry is open by its exact name and port only", async () => {
  await using registry = await openRegistry({ one: '1.2.3' });
  await using inner = await openRegistry({ one: '1.2.3' });
  await using lab = await openLab([`@mine:registry=http://localhost:${registry.port}/npm/`]);
  assert.match(await lab.get(`http://localhost:${registry.port}/one`), /^200 .*"1\.2\.3"/);
  assert.is(await lab.tunnel(`LOCALHOST:${registry.port}`), '200');
  assert.is(lab.egress.isRefused, false);
  const closed = ['127.0.0.1', '[::1]', '0x7f.1'].map((host) => `${host}:${registry.port}`);
  for (const place of [
    ...closed,
    `localhost:${inner.port}`,
    '169.254.169.254:80',
    '10.0.0.1:443',
  ]) {
    assert.match(await lab.get(`http://${place}/one`), /^403 /, place);
    assert.is(await lab.tunnel(place), '403', place);
  }
  assert.is(lab.egress.isRefused, true);
  assert.equal([registry.asked, inner.asked], [['/one'], []]);
});

test('each refusal is logged once, up to a limit; an unresolved name is none', async () => {
  await using lab = await openLab([]);
  assert.match(await lab.get('http://none.invalid/'), /^502 no address for none\.invalid/);
  assert.is(lab.egress.isRefused, false);
  for (let port = 1; port <= 30; port += 1) {
    await lab.get(`http://10.0.0.1:${port}/`);
    await lab.get(`http://10.0.0.1:${port}/again`);
  }
  assert.is(lab.said.length, 20);
  assert.is(lab.said[0], 'warn no address for none.invalid');
  assert.match(lab.said[1] ?? '', /^warn 10\.0\.0\.1:1 is not reachable from here: private/);
  assert.is(new Set(lab.said).size, 20);
});

test("the operator's proxy is used with its credentials and opens no private address", async () => {
  await using registry = await openRegistry({ one: '1.2.3' });
  await using proxy = await startHttpProxy(registry.port, ME);
  const settings = [
    `https-proxy=http://me:p%3Ass@${proxy.address}/`,
    'noproxy=near.invalid, 127.0.0.1',
    `registry=http://127.0.0.1:${registry.port}/`,
  ];
  await using lab = await openLab(settings, { HTTPS_PROXY: 'http://127.0.0.1:1' });
  assert.is(await lab.get('http://npm.invalid/one'), '200 through the proxy');
  assert.is(await lab.tunnel('npm.invalid:443'), '200');
  const asked = ['GET http://npm.invalid/one', 'CONNECT npm.invalid:443'];
  assert.equal(proxy.asked, asked);
  for (const place of ['10.0.0.1:443', 'localhost:80', proxy.address]) {
    assert.is(await lab.tunnel(place), '403', place);
  }
  // without it: what noproxy names, and its subdomains
  assert.match(await lab.get(`http://127.0.0.1:${registry.port}/one`), /^200 .*"1\.2\.3"/);
  assert.is(await lab.tunnel('very.near.invalid:443'), '502');
  assert.equal(proxy.asked, asked);
});

test('HTTP_PROXY alone is used for http: only, as by npm', async () => {
  await using registry = await openRegistry({ one: '1.2.3' });
  await using proxy = await startHttpProxy(registry.port);
  const place = `127.0.0.1:${registry.port}`;
  await using lab = await openLab([`registry=http://${place}/`], { HTTP_PROXY: proxy.address });
  assert.is(await lab.get(`http://${place}/one`), '200 through the proxy');
  assert.is(await lab.tunnel(place), '200');
  assert.equal(proxy.asked, [`GET http://${place}/one`]);
});

test('an invalid proxy fails the build without showing its password', async () => {
  try {
    const jail = await openJail({ sandbox: 'none', log });
    const lines = { line: () => undefined };
    const place = { directory: '/nowhere', uid: undefined };
    const env = { HTTPS_PROXY: 'ftp://me:secret@proxy.test' };
    await openInstallEgress({ jail, env, place, lines, log });
    assert.unreachable();
  } catch (error) {
    assert.instance(error, BuildFailure);
    assert.match((error as Error).message, /npm settings is not the address.*ask its operator/);
    assert.not.match((error as Error).message, 'secret');
  }
});

test('nothing listens after the egress was closed', async () => {
  const lab = await openLab([]);
  await lab[Symbol.asyncDispose]();
  const socket = connect(Number(lab.egress.localPort), '127.0.0.1');
  const [error] = await once(socket, 'error');
  assert.is((error as NodeJS.ErrnoException).code, 'ECONNREFUSED');
});

test.run();
