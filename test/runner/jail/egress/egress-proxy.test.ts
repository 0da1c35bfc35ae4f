/**
 * The proxy that a jail's traffic passes: what it lets out, what it refuses, and that bytes arrive
 * as sent.
 */
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Server } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { type Egress, openEgress } from '../../../../runner/jail/egress/egress-proxy.ts';
import { forwarded } from '../../../../runner/jail/egress/http1.ts';

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

/** Names are answered from a table: no name server is asked. */
async function openLab(allow: string[], names: Record<string, string[]> = {}): Promise<Lab> {
  const egress = openEgress({
    allow: cidrList(allow),
    log,
    resolve: async (name) => names[name] ?? [],
  });
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

/** Opens a tunnel, says `text`, and gives all that came back. */
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

egress('an address that the operator opened is reached, by both ways', async () => {
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

egress('one private address among public ones closes the name', async () => {
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

egress('what is no target is a bad request', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  const targets = ['127.0.0.1', 'user@127.0.0.1:80', '127.0.0.1:80/x', ':80', '127.0.0.1:99999'];
  for (const authority of targets) {
    assert.match(await tunnel(lab, authority, ''), /^HTTP\/1\.1 400/, authority);
  }
});

egress('a megabyte goes out and comes back as it was', async () => {
  await using lab = await openLab(['127.0.0.1/32']);
  const bytes = Buffer.alloc(1 << 20, 'abcdefg');
  const { body } = await get(lab, `http://127.0.0.1:${lab.sitePort}/echo`, bytes);
  assert.ok(bytes.equals(Buffer.from(body, 'latin1')));
  assert.ok(lab.egress.bytes.sent >= bytes.length);
});

egress('a name is dialled at the address that was judged', async () => {
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

egress('headers of one hop are dropped, the others keep order and spelling', () => {
  const fields = ['Host: a', 'Connection: close, X-Hop', 'x-hop: 1', 'Cookie: a', 'Cookie: b'];
  const raw = fields.map((line) => {
    const [name = '', value = ''] = line.split(': ');
    return { name, key: name.toLowerCase(), value };
  });
  const kept = forwarded(raw).map(({ name, value }) => `${name}: ${value}`);
  assert.equal(kept, ['Host: a', 'Cookie: a', 'Cookie: b']);
});

egress.run();
