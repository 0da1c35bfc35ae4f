/** Connections out of a jail through proxies: their routes and credentials. */
import { createServer, request } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { upstreamOf } from '../../../../proto/network/session-proxies.ts';
import { openEgress } from '../../../../runner/jail/egress/egress-proxy.ts';
import { openPatterns } from '../../../../runner/jail/egress/patterns.ts';
import type { Route } from '../../../../runner/jail/egress/routes.ts';
import { startHttpProxy, startSocksProxy } from '../../../support/servers/proxies.ts';

const upstream = suite('runner/jail/egress/upstream-proxy');
const log = openLog({ role: 'test', level: 'silent', people: false });
const tenants = openPatterns().ofSession();
const ME = { username: 'me', password: 'p:ss' };

async function openLab(allow: string[], names: Record<string, string[]> = {}) {
  const egress = openEgress({
    allow: cidrList(allow),
    log,
    resolve: async (name) => names[name] ?? [],
  });
  const site = createServer((_, to) => void to.end('site'));
  const server = createTcp(egress.handle);
  const listen = async (server: ReturnType<typeof createTcp>): Promise<number> => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const [sitePort, port] = [await listen(site), await listen(server)];
  return {
    egress,
    sitePort,
    /** Status and body of a plain request through the egress. */
    get: (url: string) =>
      new Promise<string>((resolve, reject) => {
        const { host } = new URL(url);
        // one of its own: a new course drops those that are open
        const asking = request({ port, path: url, headers: { host }, agent: false });
        asking.on('error', reject).on('response', (answer) => {
          let text = '';
          answer.on('data', (part) => {
            text += String(part);
          });
          answer.on('end', () => resolve(`${answer.statusCode} ${text}`));
        });
        asking.end();
      }),
    /** The whole output of a tunnel after one request. */
    tunnel: (authority: string) =>
      new Promise<string>((resolve) => {
        const socket = connect(port, '127.0.0.1');
        let said = '';
        socket.setEncoding('latin1').on('data', (part: string) => {
          const isOpen = said === '' && part.startsWith('HTTP/1.1 200');
          if (isOpen) socket.end('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
          said += part;
        });
        socket.on('close', () => resolve(said));
        socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
      }),
    async [Symbol.asyncDispose]() {
      egress.close();
      server.close();
      site.close();
      site.closeAllConnections();
    },
  };
}

const LOCAL = ['127.0.0.1/32'];
const by = (server: string, given: object = {}): Route => ({
  via: upstreamOf(server, { isManaged: false, ...given }),
});

upstream('an http proxy with credentials carries plain requests and tunnels', async () => {
  await using lab = await openLab(LOCAL);
  await using proxy = await startHttpProxy(lab.sitePort, ME);
  lab.egress.steer({ routes: [by(proxy.address, ME)] });
  assert.is(await lab.get('http://far.test/a?b'), '200 through the proxy');
  assert.match(await lab.tunnel('far.test:443'), /200 OK[\s\S]*site/);
  assert.equal(proxy.asked, ['GET http://far.test/a?b', 'CONNECT far.test:443']);
});

upstream('a refusing proxy is a bad gateway, and is not bypassed', async () => {
  await using lab = await openLab(LOCAL, { 'far.test': ['127.0.0.1'] });
  await using proxy = await startHttpProxy(lab.sitePort, ME);
  lab.egress.steer({ routes: [by(`http://me:wrong@${proxy.address}`)] });
  assert.match(await lab.tunnel(`far.test:${lab.sitePort}`), /^HTTP\/1\.1 502/);
  assert.match(await lab.get('http://far.test/'), /^407/);
  lab.egress.steer({ routes: [by('127.0.0.1:1')] });
  assert.match(await lab.tunnel(`far.test:${lab.sitePort}`), /^HTTP\/1\.1 502/);
  assert.match(await lab.get(`http://far.test:${lab.sitePort}/`), /^502/);
});

upstream('a socks5 proxy with a password carries both; a wrong one carries neither', async () => {
  await using lab = await openLab(LOCAL);
  await using proxy = await startSocksProxy(lab.sitePort, ME);
  lab.egress.steer({ routes: [by(`socks5://${proxy.address}`, ME)] });
  assert.is(await lab.get('http://far.test/'), '200 site');
  assert.match(await lab.tunnel('other.test:443'), /200 OK[\s\S]*site/);
  assert.equal(proxy.asked, ['SOCKS far.test:80', 'SOCKS other.test:443']);
  lab.egress.steer({ routes: [by(`socks5://${proxy.address}`, { ...ME, password: 'no' })] });
  assert.match(await lab.get('http://far.test/'), /^502/);
  assert.match(await lab.tunnel('other.test:443'), /^HTTP\/1\.1 502/);
});

upstream('the first matching route applies; without a match the connection is direct', async () => {
  await using lab = await openLab(LOCAL, { 'near.test': ['127.0.0.1'] });
  await using proxy = await startHttpProxy(lab.sitePort);
  lab.egress.steer({
    routes: [
      { pattern: tenants('near\\.test') },
      { pattern: tenants('^far'), ...by(proxy.address) },
    ],
  });
  assert.is(await lab.get(`http://near.test:${lab.sitePort}/`), '200 site');
  assert.is(await lab.get('http://far.test/'), '200 through the proxy');
  assert.match(await lab.get('http://neither.test/'), /^502 no address/);
  assert.equal(proxy.asked, ['GET http://far.test/']);
});

upstream('a proxy is not used for a denied target, nor at a denied address', async () => {
  await using open = await openLab(LOCAL, { 'inner.test': ['10.0.0.1'] });
  await using proxy = await startHttpProxy(open.sitePort);
  open.egress.steer({ routes: [by(proxy.address)] });
  for (const host of ['10.0.0.1', 'inner.test', '[fe80::1]']) {
    assert.match(await open.get(`http://${host}/`), /^403/, host);
    assert.match(await open.tunnel(`${host}:443`), /^HTTP\/1\.1 403/, host);
  }
  await using closed = await openLab([]);
  closed.egress.steer({ routes: [by(proxy.address)] });
  assert.match(await closed.get('http://far.test/'), /^403 the proxy/);
  assert.equal(proxy.asked, []);
});

upstream("bytes through the operator's proxies are counted, through a tenant's not", async () => {
  await using lab = await openLab(LOCAL);
  await using proxy = await startHttpProxy(lab.sitePort);
  lab.egress.steer({ routes: [by(proxy.address)] });
  await lab.get('http://far.test/');
  assert.is(lab.egress.bytes.managed, 0);
  lab.egress.steer({ routes: [by(proxy.address, { isManaged: true })] });
  await lab.get('http://far.test/');
  assert.ok(lab.egress.bytes.managed > 0);
});

upstream('a listed host is refused for requests and tunnels', async () => {
  await using lab = await openLab(LOCAL, { 'ads.test': ['127.0.0.1'], 'ok.test': ['127.0.0.1'] });
  lab.egress.steer({ isBlocked: ({ hostname }) => hostname === 'ads.test' });
  assert.match(await lab.get(`http://ads.test:${lab.sitePort}/`), /^403 .*filter list/);
  assert.match(await lab.tunnel(`ads.test:${lab.sitePort}`), /^HTTP\/1\.1 403/);
  assert.is(await lab.get(`http://ok.test:${lab.sitePort}/`), '200 site');
});

upstream('a proxy address is accepted in any form; an error does not contain the password', () => {
  const given = { isManaged: false };
  assert.equal(upstreamOf('socks5://u:p%40@h.test', given), {
    protocol: 'socks5',
    host: 'h.test',
    port: 1080,
    username: 'u',
    password: 'p@',
    isManaged: false,
  });
  assert.is(upstreamOf('h.test:3128', given).port, 3128);
  assert.is(upstreamOf('https://h.test', given).port, 443);
  for (const server of ['ftp://u:secret@h', 'http://u:secret@:x', 'pac+http://u:secret@h']) {
    try {
      upstreamOf(server, given);
      assert.unreachable(server);
    } catch (error) {
      assert.not.match(String(error), /secret/);
    }
  }
});

upstream.run();
