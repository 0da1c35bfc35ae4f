/** A browser's plain http uses SOCKS: a tunnel, unless requests must be read. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { upstreamOf } from '../../../../proto/network/session-proxies.ts';
import { until } from '../../../support/poll.ts';
import { startHttpProxy, startSocksProxy } from '../../../support/servers/proxies.ts';
import { type Client, get, type Lab, openLab } from './forward-lab.ts';

const socks = suite('runner/jail/egress/socks');

const HELLO = '\x05\x01\x00';
const GRANTED = '\x05\x00\x00\x01\0\0\0\0\0\0';
const ME = { username: 'me', password: 'p:ss' };

type Kind = 'name' | 'ipv4' | 'ipv6';

/** A connection that has requested a destination, and the bytes received. */
async function open(lab: Lab, host: string, kind: Kind = 'name', port = portOf(lab)) {
  const client = await lab.client();
  assert.is(await client.ask(HELLO, '\0'), '\x05\0');
  const heard = await client.ask(`\x05\x01\0${place(host, kind)}${word(port)}`, '\0\0\0\0');
  return { client, heard };
}

async function opened(lab: Lab, host = '127.0.0.1', port = portOf(lab)): Promise<Client> {
  const { client, heard } = await open(lab, host, 'name', port);
  assert.is(heard, GRANTED);
  return client;
}

function place(host: string, kind: Kind): string {
  if (kind === 'name') return `\x03${String.fromCharCode(host.length)}${host}`;
  if (kind === 'ipv4') return `\x01${String.fromCharCode(...host.split('.').map(Number))}`;
  return `\x04${'\0'.repeat(15)}\x01`; // ::1
}

const portOf = (lab: Lab): number => Number(lab.host.split(':')[1]);
const word = (port: number): string => String.fromCharCode(port >> 8, port & 0xff);
const LAST = ['Connection: close'];

socks('a tunnel forwards bytes unchanged in both directions', async () => {
  await using lab = await openLab('HTTP/1.1 299 \tAs It Is\nOdd : header\r\n\r\n');
  const client = await opened(lab);
  const odd = 'GET /a#b HTTP/1.1\nhost: x\r\nConnection: X-Mine\r\nX-Mine: kept\r\n\r\n';
  assert.is(await client.ask(odd, '\r\n\r\n'), 'HTTP/1.1 299 \tAs It Is\nOdd : header\r\n\r\n');
  assert.equal(lab.asked, [odd]);
  client.socket.destroy();
  await until(() => lab.egress.bytes.sent === odd.length);
});

socks('a destination is a name, an IPv4 or an IPv6 address', async () => {
  await using lab = await openLab((from, to) => void to.end(`to ${from.headers.host}`));
  for (const [host, kind] of [
    ['127.0.0.1', 'ipv4'],
    ['127.0.0.1', 'name'],
    ['localhost', 'name'],
  ] as const) {
    const { client, heard } = await open(lab, host, kind);
    assert.is(heard, GRANTED, host);
    assert.match(await client.last(get('/', ...LAST)), /^HTTP\/1\.1 200 /, host);
  }
  // no process listens there: the response contains the parsed address
  for (const [host, kind] of [
    ['', 'ipv6'],
    ['::1', 'name'],
  ] as const) {
    const { client } = await open(lab, host, kind);
    assert.match(await client.last(get('/')), /502 [\s\S]*::1 does not answer/, kind);
  }
});

socks('messages are read in chunks of any size', async () => {
  await using lab = await openLab((_, to) => void to.end('site'));
  const all = `${HELLO}\x05\x01\0${place('127.0.0.1', 'name')}${word(portOf(lab))}`;
  const slow = await lab.client();
  slow.socket.setNoDelay(true);
  for (const byte of all) {
    slow.socket.write(byte, 'latin1');
    await new Promise(setImmediate);
  }
  await until(() => slow.said === `\x05\0${GRANTED}`);
  const quick = await lab.client();
  const heard = await quick.last(all + get('/', ...LAST));
  assert.ok(heard.startsWith(`\x05\0${GRANTED}HTTP/1.1 200 OK`), heard);
});

socks('the response for a denied or failed destination has the reason', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  for (const host of ['10.0.0.1', '169.254.169.254', '0xa9fea9fe', '192.168.0.1']) {
    const said = await (await opened(lab, host)).last(get('/'));
    assert.match(said, /^HTTP\/1\.1 403 /, host);
    assert.match(said, /not reachable from here/, host);
  }
  assert.match(await (await opened(lab, '127.0.0.1', 25)).last(get('/')), / 403 .*mail ports/s);
  assert.match(await (await opened(lab, '127.0.0.1', 1)).last(get('/')), / 502 .*not answer/s);
  assert.equal(lab.asked, []);
});

socks('with a filter list each request is checked by its path', async () => {
  await using lab = await openLab((from, to) => void to.end(`${from.method} ${from.url}`));
  lab.egress.steer({ isBlocked: ({ pathname }) => pathname.startsWith('/ads') });
  const client = await opened(lab);
  assert.match(await client.ask(get('/page?q'), '/page?q'), /^HTTP\/1\.1 200 /);
  assert.match(await client.last(get('/ads/1')), /^HTTP\/1\.1 403 .*filter list/s);
  assert.equal(lab.asked, ['GET /page?q']);
});

socks('a read connection forwards requests to its destination only', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  await using other = await openLab((_, to) => void to.end('never'));
  for (const said of [
    get(`${other.site}/`),
    get('@elsewhere/'),
    get('*'),
    `CONNECT ${other.host} HTTP/1.1\r\n\r\n`,
    'no request\r\n\r\n',
  ]) {
    lab.egress.steer({ isBlocked: () => false });
    assert.match(await (await opened(lab)).last(said), /^HTTP\/1\.1 400 /, said);
  }
  assert.equal([...lab.asked, ...other.asked], []);
});

socks('an http proxy gets whole requests, a socks proxy gets a tunnel', async () => {
  await using lab = await openLab((_, to) => void to.end('site'));
  await using http = await startHttpProxy(portOf(lab), ME);
  await using five = await startSocksProxy(portOf(lab), ME);
  const by = (server: string) => {
    lab.egress.steer({ routes: [{ via: upstreamOf(server, { isManaged: false, ...ME }) }] });
  };
  by(http.address);
  const read = await opened(lab, 'far.test', 80);
  assert.match(await read.last(get('/a?b', ...LAST)), /through the proxy/);
  assert.equal(http.asked, ['GET http://far.test/a?b']);
  by(`socks5://${five.address.replace(/^.*\//, '')}`);
  const passed = await opened(lab, 'far.test', 80);
  assert.match(await passed.last(get('/c', ...LAST)), /200 OK[\s\S]*site/);
  assert.equal(lab.asked, ['GET /c']);
});

socks("a proxy's 407 is not forwarded as the site's", async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  await using http = await startHttpProxy(portOf(lab), ME);
  const wrong = { ...ME, password: 'wrong', isManaged: false };
  lab.egress.steer({ routes: [{ via: upstreamOf(http.address, wrong) }] });
  const said = await (await opened(lab, 'far.test', 80)).last(get('/'));
  assert.match(said, /^HTTP\/1\.1 502 [\s\S]*refuses its credentials/);
  assert.not.match(said, /wrong/);
});

socks("a site's own 407 is forwarded", async () => {
  await using lab = await openLab((_, to) => void to.writeHead(407).end('mine'));
  const client = await opened(lab);
  assert.match(await client.last(get('/', ...LAST)), /^HTTP\/1\.1 407 [\s\S]*mine/);
});

socks('a connection ends when its route changes', async () => {
  await using lab = await openLab((from, to) => void to.end(String(from.url)));
  const client = await opened(lab);
  await client.ask(get('/before'), '/before');
  lab.egress.steer({ isBlocked: () => true });
  await until(() => client.isOver);
  assert.match(await (await opened(lab)).last(get('/after')), /^HTTP\/1\.1 403 /);
  assert.equal(lab.asked, ['GET /before']);
});

socks('a request other than CONNECT without credentials is refused in SOCKS', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  const to = `${place('127.0.0.1', 'name')}${word(portOf(lab))}`;
  for (const [said, answer] of [
    ['\x05\x01\x02', '\x05\xff'], // a password
    ['\x05\x00', '\x05\xff'],
    [`${HELLO}\x05\x02\0${to}`, '\x05\0\x05\x07'], // BIND
    [`${HELLO}\x05\x03\0${to}`, '\x05\0\x05\x07'], // UDP
    [`${HELLO}\x05\x01\0\x09ab`, '\x05\0\x05\x08'],
    [`${HELLO}\x05\x01\0\x03\0\0\x50`, '\x05\0\x05\x08'],
    [`${HELLO}\x05\x01\0${place('a/b', 'name')}\0\x50`, '\x05\0\x05\x08'],
    [`${HELLO}\x05\x01\0${place('me:pass@a', 'name')}\0\x50`, '\x05\0\x05\x08'],
    [`${HELLO}\x05\x01\0${place('a\\b', 'name')}\0\x50`, '\x05\0\x05\x08'],
    [`${HELLO}\x04\x01\0${to}`, '\x05\0'],
  ] as const) {
    const client = await lab.client();
    const heard = await client.last(said);
    assert.is(heard.slice(0, answer.length), answer, JSON.stringify(said));
  }
  assert.equal(lab.asked, []);
});

socks('a client that disconnects within a message leaves no connection', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  for (const said of ['\x05', '\x05\x03\0', `${HELLO}\x05\x01`, `${HELLO}\x05\x01\0\x03\x20ab`]) {
    const client = await lab.client();
    client.socket.end(said, 'latin1');
    await until(() => client.isOver);
  }
  await until(async () => (await lab.connections()) === 0);
  assert.equal(lab.asked, []);
});

socks.run();
