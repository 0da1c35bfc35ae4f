/** Plain requests through the egress: kept connections, bodies of each kind, hostile peers. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { get, openLab, post } from './forward-lab.ts';

const forward = suite('runner/jail/egress/http-forward');

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

forward('a path is forwarded unchanged, with an empty query too', async () => {
  await using lab = await openLab((from, to) => void to.end(from.url));
  const client = await lab.client();
  for (const path of ['/b?', '/b?c=%20|d', '/b%2Fc/', '/?']) {
    assert.ok(await client.ask(get(lab.site + path), `\r\n\r\n${path}`), path);
  }
});

forward('a request to another destination closes the connection to the first', async () => {
  await using lab = await openLab((_, to) => void to.end('one'));
  await using second = await openLab((_, to) => void to.end('two'));
  const client = await lab.client();
  await client.ask(get(`${lab.site}/`), 'one');
  assert.match(await client.ask(get(`${second.site}/`), 'two'), /two$/);
  await until(() => lab.taken.every(({ destroyed }) => destroyed));
  assert.equal(second.asked, ['GET /']);
});

forward('pipelined requests receive their responses in order', async () => {
  await using lab = await openLab((from, to) => void to.end(String(from.url)));
  const client = await lab.client();
  const both = get(`${lab.site}/first`) + get(`${lab.site}/second`, 'Connection: close');
  assert.match(await client.last(both), /\/first[\s\S]*\/second$/);
});

forward('bodies are forwarded unchanged, sized and chunked', async () => {
  await using lab = await openLab((from, to) => void from.pipe(to));
  const client = await lab.client();
  const sized = await client.ask(post(`${lab.site}/`, '12345', 'Content-Length: 5'), '0\r\n\r\n');
  assert.match(sized, /\r\n\r\n5\r\n12345\r\n0\r\n\r\n$/);
  const chunks = '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n';
  const said = post(`${lab.site}/`, chunks, 'Transfer-Encoding: chunked');
  assert.match(await client.ask(said, '0\r\n\r\n'), /abc[\s\S]*de[\s\S]*0\r\n\r\n$/);
  assert.is(lab.taken.length, 1);
});

forward('a request that may hide a second one is refused and not forwarded', async () => {
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

forward('invalid chunks end the connection to the site', async () => {
  await using lab = await openLab((from, to) => void from.resume().on('end', () => to.end('ok')));
  const client = await lab.client();
  const said = post(`${lab.site}/`, '1\na\r\n0\r\n\r\n', 'Transfer-Encoding: chunked');
  assert.match(await client.last(said), /^(HTTP\/1\.1 502[\s\S]*)?$/);
});

forward('a kept connection that its site has closed is replaced', async () => {
  await using lab = await openLab((_, to) => void to.end('site'));
  const client = await lab.client();
  await client.ask(get(`${lab.site}/`), 'site');
  for (const socket of lab.taken) socket.destroy();
  assert.match(await client.ask(get(`${lab.site}/`), 'site'), /200 OK/);
});

forward("an unsafe request is not repeated: the client's connection closes", async () => {
  await using lab = await openLab((from, to) => {
    if (from.method === 'POST') from.socket.destroy();
    else to.end('site');
  });
  const client = await lab.client();
  await client.ask(get(`${lab.site}/`), 'site');
  assert.is(await client.last(post(`${lab.site}/`, 'a', 'Content-Length: 1')), '');
  assert.equal(lab.asked, ['GET /', 'POST /']);
});

forward('a request with an invalid response is not repeated', async () => {
  await using lab = await openLab((from, to) => {
    if (from.url === '/bad') from.socket.end('HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n');
    else to.end('site');
  });
  for (const ask of [get(`${lab.site}/bad`), post(`${lab.site}/bad`, 'a', 'Content-Length: 1')]) {
    const client = await lab.client();
    await client.ask(get(`${lab.site}/`), 'site');
    assert.match(await client.last(ask), /^HTTP\/1\.1 502 /);
  }
  assert.equal(lab.asked, ['GET /', 'GET /bad', 'GET /', 'POST /bad']);
});

forward(
  'a site without a response is a bad gateway; an incomplete response closes the connection',
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

forward('a response with two lengths is a bad gateway', async () => {
  await using lab = await openLab(
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  );
  assert.match(await (await lab.client()).last(get(`${lab.site}/`)), /^HTTP\/1\.1 502 /);
});

forward('bytes after a response reach no other request', async () => {
  const bare = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na';
  await using lab = await openLab(
    `${bare}HTTP/1.1 407 Hidden\r\nProxy-Authenticate: Basic\r\n\r\n`,
  );
  const client = await lab.client();
  assert.is(await client.ask(get(`${lab.site}/`), 'a'), bare);
  const next = await client.last(get(`${lab.site}/`, 'Connection: close'));
  assert.not.match(next, /Proxy-Authenticate/);
});

forward('hop-by-hop headers are not forwarded', async () => {
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

forward('an early hint is forwarded before its response', async () => {
  await using lab = await openLab((_, to) => {
    to.writeEarlyHints({ link: '</a.css>; rel=preload' });
    to.end('site');
  });
  const said = await (await lab.client()).ask(get(`${lab.site}/`), 'site');
  assert.match(said, /^HTTP\/1\.1 103 [\s\S]*a\.css[\s\S]*HTTP\/1\.1 200 OK/);
});

forward('a disconnected client ends its request at the site', async () => {
  await using lab = await openLab(() => undefined);
  const client = await lab.client();
  client.socket.write(get(`${lab.site}/`));
  await until(() => lab.asked.length > 0);
  client.socket.destroy();
  await until(() => lab.taken.every(({ destroyed }) => destroyed));
});

forward('a head above the size limit is refused', async () => {
  await using lab = await openLab((_, to) => void to.end('never'));
  const client = await lab.client();
  const endless = `${get(`${lab.site}/`).slice(0, -2)}X: ${'a'.repeat(300 << 10)}`;
  assert.match(await client.last(endless), /^HTTP\/1\.1 400 |^$/);
  assert.equal(lab.asked, []);
});

forward.run();
