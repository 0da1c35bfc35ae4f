/** Plain requests through the egress: connections that stay, bodies of each kind, hostile ends. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cidrList } from '../../../proto/addresses.ts';
import { openLog } from '../../../proto/log.ts';
import { openEgress } from '../../../runner/jail/egress.ts';
import { until } from '../../support/poll.ts';

const forward = suite('runner/jail/forward');
const log = openLog({ role: 'test', level: 'silent', people: false });

type Lab = AsyncDisposable & {
  /** http://127.0.0.1:port */
  site: string;
  host: string;
  asked: string[];
  /** Connections that the site has taken. */
  taken: Socket[];
  client(): Promise<Client>;
};

/** `answer` as a site does, or raw: what it says to whatever it is asked. */
async function openLab(
  answer: ((from: IncomingMessage, to: ServerResponse) => void) | string,
): Promise<Lab> {
  const egress = openEgress({ allow: cidrList(['127.0.0.0/8']), log });
  const asked: string[] = [];
  const taken: Socket[] = [];
  const site =
    typeof answer === 'string'
      ? createTcp((socket) => {
          socket.on('error', () => socket.destroy());
          socket.on('data', (bytes) => {
            asked.push(bytes.toString('latin1'));
            socket.write(answer, 'latin1');
          });
        })
      : createServer((from, to) => {
          asked.push(`${from.method} ${from.url}`);
          answer(from, to);
        });
  site.on('connection', (socket: Socket) => taken.push(socket));
  const door = createTcp(egress.handle);
  const [sitePort, doorPort] = await Promise.all([portOf(site), portOf(door)]);
  return {
    site: `http://127.0.0.1:${sitePort}`,
    host: `127.0.0.1:${sitePort}`,
    ...{ asked, taken },
    client: async () => await Client.open(doorPort),
    async [Symbol.asyncDispose]() {
      egress.close();
      for (const socket of taken) socket.destroy();
      door.close();
      site.close();
    },
  };
}

async function portOf(server: ReturnType<typeof createTcp>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** One connection to the egress, raw. */
class Client {
  readonly socket: Socket;
  said = '';
  isOver = false;

  static async open(port: number): Promise<Client> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Client(socket);
  }

  private constructor(socket: Socket) {
    this.socket = socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.said += text;
    });
    socket
      .on('error', () => undefined)
      .on('close', () => {
        this.isOver = true;
      });
  }

  /** Says it, and gives what comes back when that ends so. */
  async ask(text: string, end: string): Promise<string> {
    this.said = '';
    this.socket.write(text, 'latin1');
    await until(() => this.said.endsWith(end));
    return this.said;
  }

  /** Says it, and gives all that comes back until the connection ends. */
  async last(text: string): Promise<string> {
    this.said = '';
    this.socket.write(text, 'latin1');
    await until(() => this.isOver);
    return this.said;
  }
}

const get = (url: string, ...lines: string[]): string =>
  [`GET ${url} HTTP/1.1`, 'Host: elsewhere', ...lines, '', ''].join('\r\n');
const post = (url: string, body: string, ...lines: string[]): string =>
  `${get(url, ...lines).replace('GET', 'POST')}${body}`;

forward('requests of one client to one site share a connection, other clients do not', async () => {
  await using lab = await openLab((from, to) => void to.end(`${from.url} of ${from.headers.host}`));
  const one = await lab.client();
  assert.match(
    await one.ask(get(`${lab.site}/1`), lab.host),
    /^HTTP\/1\.1 200 OK\r\n[\s\S]*\/1 of/,
  );
  assert.match(await one.ask(get(`${lab.site}/2`), lab.host), /\/2 of/);
  assert.is(lab.taken.length, 1);
  const other = await lab.client();
  assert.match(await other.ask(get(`${lab.site}/3`), lab.host), /\/3 of/);
  assert.is(lab.taken.length, 2);
});

forward('a request to another place leaves the connection to the first', async () => {
  await using lab = await openLab((_, to) => void to.end('one'));
  await using second = await openLab((_, to) => void to.end('two'));
  const client = await lab.client();
  await client.ask(get(`${lab.site}/`), 'one');
  assert.match(await client.ask(get(`${second.site}/`), 'two'), /two$/);
  await until(() => lab.taken.every(({ destroyed }) => destroyed));
  assert.equal(second.asked, ['GET /']);
});

forward('requests said at once are answered in order', async () => {
  await using lab = await openLab((from, to) => void to.end(String(from.url)));
  const client = await lab.client();
  const both = get(`${lab.site}/first`) + get(`${lab.site}/second`, 'Connection: close');
  assert.match(await client.last(both), /\/first[\s\S]*\/second$/);
});

forward('a body goes through as it is, sized and in chunks', async () => {
  await using lab = await openLab((from, to) => void from.pipe(to));
  const client = await lab.client();
  const sized = await client.ask(post(`${lab.site}/`, '12345', 'Content-Length: 5'), '0\r\n\r\n');
  assert.match(sized, /\r\n\r\n5\r\n12345\r\n0\r\n\r\n$/);
  const chunks = '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n';
  const said = post(`${lab.site}/`, chunks, 'Transfer-Encoding: chunked');
  assert.match(await client.ask(said, '0\r\n\r\n'), /abc[\s\S]*de[\s\S]*0\r\n\r\n$/);
  assert.is(lab.taken.length, 1);
});

forward('what hides a second request is refused, and the site is not asked', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  for (const text of [
    post(`${lab.site}/`, '0\r\n\r\n', 'Content-Length: 5', 'Transfer-Encoding: chunked'),
    post(`${lab.site}/`, 'ab', 'Content-Length: 1', 'Content-Length: 2'),
    post(`${lab.site}/`, 'a', 'Content-Length : 1'),
    get(`${lab.site}/`, 'X: a', ' Content-Length: 9'),
    get('/no-url'),
    'GET\r\n\r\n',
  ]) {
    const client = await lab.client();
    assert.match(await client.last(text), /^HTTP\/1\.1 400 /, text);
  }
  assert.equal(lab.asked, []);
});

forward('chunks that are none end the connection to the site', async () => {
  await using lab = await openLab((from, to) => void from.resume().on('end', () => to.end('ok')));
  const client = await lab.client();
  const said = post(`${lab.site}/`, '1\na\r\n0\r\n\r\n', 'Transfer-Encoding: chunked');
  assert.match(await client.last(said), /^(HTTP\/1\.1 502[\s\S]*)?$/);
});

forward('a kept connection that its site has closed is made anew', async () => {
  await using lab = await openLab((_, to) => void to.end('site'));
  const client = await lab.client();
  await client.ask(get(`${lab.site}/`), 'site');
  for (const socket of lab.taken) socket.destroy();
  assert.match(await client.ask(get(`${lab.site}/`), 'site'), /200 OK/);
});

forward(
  'a site that goes without a word is a bad gateway, one that breaks off no answer',
  async () => {
    await using silent = await openLab((from) => void from.socket.destroy());
    assert.match(await (await silent.client()).last(get(`${silent.site}/`)), /^HTTP\/1\.1 502 /);
    await using broken = await openLab((_, to) => {
      to.writeHead(200, { 'content-length': '10' });
      to.write('12345', () => void to.destroy());
    });
    const said = await (await broken.client()).last(get(`${broken.site}/`));
    assert.match(said, /Content-Length: 10[\s\S]*12345$/);
  },
);

forward('an answer with two lengths is a bad gateway', async () => {
  await using lab = await openLab(
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  );
  assert.match(await (await lab.client()).last(get(`${lab.site}/`)), /^HTTP\/1\.1 502 /);
});

forward('what a site says after its answer reaches no other request', async () => {
  const bare = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na';
  await using lab = await openLab(
    `${bare}HTTP/1.1 407 Hidden\r\nProxy-Authenticate: Basic\r\n\r\n`,
  );
  const client = await lab.client();
  assert.is(await client.ask(get(`${lab.site}/`), 'a'), bare);
  const next = await client.last(get(`${lab.site}/`, 'Connection: close'));
  assert.not.match(next, /Proxy-Authenticate/);
});

forward('headers of one hop stay on theirs', async () => {
  await using lab = await openLab((from, to) => {
    assert.is(from.headers['x-hop'], undefined);
    to.setHeader('Proxy-Authenticate', 'Basic');
    to.setHeader('Keep-Alive', 'timeout=5');
    to.end('site');
  });
  const client = await lab.client();
  const said = await client.ask(get(`${lab.site}/`, 'Connection: x-hop', 'X-Hop: 1'), 'site');
  assert.not.match(said, /proxy-authenticate|keep-alive/i);
});

forward('an early hint comes before its answer', async () => {
  await using lab = await openLab((_, to) => {
    to.writeEarlyHints({ link: '</a.css>; rel=preload' });
    to.end('site');
  });
  const said = await (await lab.client()).ask(get(`${lab.site}/`), 'site');
  assert.match(said, /^HTTP\/1\.1 103 [\s\S]*a\.css[\s\S]*HTTP\/1\.1 200 OK/);
});

forward('a client that leaves ends what it has asked for', async () => {
  await using lab = await openLab(() => undefined);
  const client = await lab.client();
  client.socket.write(get(`${lab.site}/`));
  await until(() => lab.asked.length > 0);
  client.socket.destroy();
  await until(() => lab.taken.every(({ destroyed }) => destroyed));
});

forward('a head without an end is not waited for beyond its limit', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  const client = await lab.client();
  const endless = `${get(`${lab.site}/`).slice(0, -2)}X: ${'a'.repeat(300 << 10)}`;
  assert.match(await client.last(endless), /^HTTP\/1\.1 400 |^$/);
  assert.equal(lab.asked, []);
});

forward('who does not read is not filled', async () => {
  const megabyte = Buffer.alloc(1 << 20);
  let written = 0;
  await using lab = await openLab((_, to) => {
    const write = (): void => {
      if (written > 256) return void to.end();
      written += 1;
      if (to.write(megabyte)) setImmediate(write);
      else to.once('drain', write);
    };
    write();
  });
  const client = await lab.client();
  client.socket.pause();
  client.socket.write(get(`${lab.site}/`));
  let before = -1;
  // it stands still when nobody reads, long before all of it is written
  const isStill = (): boolean => {
    const wasSame = before === written && written > 0;
    before = written;
    return wasSame;
  };
  await until(isStill);
  assert.ok(written < 200, String(written));
});

forward.run();
