/** The egress proxy: the targets that it allows and refuses, and unchanged bytes. */
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Server } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Log, openLog } from '../../../../proto/common/log.ts';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { type Egress, openEgress } from '../../../../runner/jail/egress/egress-proxy.ts';
import { answerHead } from '../../../../runner/jail/egress/http1.ts';

const egress = suite('runner/jail/egress/egress-proxy');
const log = openLog({ role: 'test', level: 'silent', people: false });

type Lab = AsyncDisposable & {
  egress: Egress;
  proxyPort: number;
  sitePort: number;
  asked: string[];
};

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  return (server.address() as AddressInfo).port;
}

/** Names are resolved from a table, without a name server. */
function openLab(allow: string[], names: Record<string, string[]> = {}): Promise<Lab> {
  const resolve = async (name: string) => names[name] ?? [];
  return openLabWith(openEgress({ allow: cidrList(allow), log, resolve }));
}

async function openLabWith(egress: Egress): Promise<Lab> {
  const asked: string[] = [];
  const site = createServer((from, to) => {
    asked.push(`${from.method} ${from.url} ${from.headers.host}`);
    if (from.url === '/echo') from.pipe(to);
    else to.writeHead(200, { 'x-seen': JSON.stringify(from.headers) }).end('site');
  });
  const proxy = createTcp(egress.handle);
  const [sitePort, proxyPort] = await Promise.all([listen(site), listen(proxy)]);
  return {
    egress,
    sitePort,
    proxyPort,
    asked,
    async [Symbol.asyncDispose]() {
      egress.close();
      site.close();
      site.closeAllConnections();
      proxy.close();
    },
  };
}

type Answer = { code: number; body: string; headers: IncomingHttpHeaders };

function get(lab: Lab, url: string, body?: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host } = new URL(url);
    const asking = request({
      port: lab.proxyPort,
      path: url,
      method: body ? 'POST' : 'GET',
      headers: { host, 'proxy-connection': 'keep-alive', 'x-mine': 'kept' },
      agent: false,
    });
    asking.on('error', reject).on('response', (answer) => {
      let text = '';
      answer.setEncoding('latin1').on('data', (part) => {
        text += part;
      });
      answer.on('end', () => {
        resolve({ code: answer.statusCode ?? 0, body: text, headers: answer.headers });
      });
    });
    asking.end(body);
  });
}

/** Opens a tunnel, sends `text`, and returns the whole response. */
function tunnel(lab: Lab, authority: string, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(lab.proxyPort, '127.0.0.1');
    let said = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      if (said === '' && part.startsWith('HTTP/1.1 200')) socket.end(text);
      said += part;
    });
    socket.on('close', () => resolve(said));
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
  });
}

const LOOPBACKS = [
  '127.0.0.1',
  'localhost',
  '2130706433',
  '0x7f.1',
  '[::ffff:7f00:1]',
  '127.0.0.1.',
];

egress('a private address is refused in every form, and not dialled', async () => {
  await using lab = await openLab([]);
  for (const host of [
    ...LOOPBACKS,
    '0.0.0.0',
    '[::1]',
    '169.254.169.254',
    '10.0.0.1',
    '[fe80::1]',
  ]) {
    const { code, body } = await get(lab, `http://${host}:${lab.sitePort}/`);
    assert.is(code, 403, host);
    assert.match(body, /not reachable/);
    assert.match(await tunnel(lab, `${host}:${lab.sitePort}`, ''), /^HTTP\/1\.1 403/, host);
  }
  assert.equal(lab.asked, []);
});

egress('a refusal names the setting and the host, and is logged once for each host', async () => {
  const lines: object[] = [];
  const own = { info: (line: object) => lines.push(line) } as unknown as Log;
  const rules = { allow: cidrList([]), allowSetting: 'THE_SETTING', log: own };
  const inner = { resolve: async () => ['10.1.2.3'] };
  await using lab = await openLabWith(openEgress({ ...rules, ...inner }));
  for (const port of [1, 2, 3]) {
    const { code, body } = await get(lab, `http://inner.test:${port}/`);
    assert.is(code, 403);
    assert.match(body, `inner.test:${port} is not reachable from here`);
    assert.match(body, 'THE_SETTING');
    assert.not.match(body, '10.1.2.3');
  }
  assert.equal(lines, [{ target: 'inner.test' }]);
  const { code, body } = await get(lab, `http://${'a'.repeat(300)}.localhost/`);
  assert.is(`${code} ${body}`, '502 a host name is too long\n');
  for (let at = 0; at < 200; at += 1) await get(lab, `http://10.0.0.${at}/`);
  assert.is(lines.length, 100);
});

egress('an address that the operator opened is reached by a request and by a tunnel', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  for (const host of LOOPBACKS) {
    const { code, body, headers } = await get(lab, `http://${host}:${lab.sitePort}/a?b`);
    assert.is(`${code} ${body}`, '200 site', host);
    const seen = JSON.parse(String(headers['x-seen']));
    assert.is(seen['x-mine'], 'kept');
    assert.is(seen['proxy-connection'], undefined);
  }
  const text = `GET /t HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
  assert.match(await tunnel(lab, `localhost:${lab.sitePort}`, text), /200 OK[\s\S]*site/);
  assert.ok(lab.egress.bytes.received > 0);
});

egress('one private address among public ones denies the name', async () => {
  await using lab = await openLab([], { mixed: ['8.8.8.8', '127.0.0.1'], inner: ['10.1.2.3'] });
  for (const host of ['mixed', 'inner']) {
    assert.is((await get(lab, `http://${host}:${lab.sitePort}/`)).code, 403, host);
  }
  assert.equal(lab.asked, []);
});

egress('a name without an address is a bad gateway', async () => {
  await using lab = await openLab([]);
  assert.is((await get(lab, 'http://nowhere.test/')).code, 502);
});

egress('a mail port is closed even at an open address', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  assert.match(await tunnel(lab, '127.0.0.1:25', ''), /^HTTP\/1\.1 403/);
});

egress('an invalid target is a bad request', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  const targets = ['127.0.0.1', 'user@127.0.0.1:80', '127.0.0.1:80/x', ':80', '127.0.0.1:99999'];
  for (const authority of targets) {
    assert.match(await tunnel(lab, authority, ''), /^HTTP\/1\.1 400/, authority);
  }
});

egress('a megabyte is sent and received unchanged', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  const bytes = Buffer.alloc(1 << 20, 'abcdefg');
  const { body } = await get(lab, `http://127.0.0.1:${lab.sitePort}/echo`, bytes);
  assert.ok(bytes.equals(Buffer.from(body, 'latin1')));
  assert.ok(lab.egress.bytes.sent >= bytes.length);
});

egress('a name is dialled at the checked address', async () => {
  await using lab = await openLab(['127.0.0.1/32'], { 'site.test': ['127.0.0.1'] });
  assert.is((await get(lab, `http://site.test:${lab.sitePort}/`)).body, 'site');
  const text = `GET /t HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
  assert.match(await tunnel(lab, `site.test:${lab.sitePort}`, text), /site/);
  assert.is(lab.asked[0], `GET / site.test:${lab.sitePort}`);
});

egress('a site that does not answer is a bad gateway', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  assert.is((await get(lab, 'http://127.0.0.1:1/')).code, 502);
  assert.match(await tunnel(lab, '127.0.0.1:1', ''), /^HTTP\/1\.1 502/);
});

egress('a closed egress drops its connections', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  const socket = connect(lab.proxyPort, '127.0.0.1');
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write(`CONNECT 127.0.0.1:${lab.sitePort} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await new Promise((resolve) => socket.once('data', resolve));
  lab.egress.close();
  await closed;
});

egress('hop-by-hop headers are dropped, the others keep their order and spelling', () => {
  const fields = ['Host: a', 'Connection: close, X-Hop', 'x-hop: 1', 'Cookie: a', 'Cookie: b'];
  const head = answerHead(['HTTP/1.1 204 -', ...fields, '', ''].join('\r\n'), 'GET');
  const kept = ['Host: a', 'Cookie: a', 'Cookie: b', 'Connection: close'];
  assert.equal(head?.text.trim().split('\r\n').slice(1), kept);
});

egress.run();
