/** Requests to one process: who may drain it, and what its probes answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openDrainRequests } from '../../../proto/drain/requests.ts';

const test = suite('proto/drain/requests');

type Peer = { remoteAddress?: string; localAddress?: string };
type Asked = { method?: string; url?: string; headers?: Record<string, string>; peer?: Peer };

/** Of a process whose drain has 600 s. Returns the status, and the time of a drain that began. */
function ask(asked: Asked): { status: number; seconds: number | undefined } {
  let [status, seconds]: [number, number | undefined] = [0, undefined];
  const end = {
    drainS: 600,
    draining: new AbortController().signal,
    drain: (given: number) => {
      seconds = given;
    },
  };
  const response = {
    writeHead(given: number) {
      status = given;
      return response;
    },
    end: () => response,
  };
  const { method = 'POST', url = '/drain', headers = { host: '127.0.0.1:9464' }, peer } = asked;
  const socket = peer ?? { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' };
  const resume = () => undefined;
  const request = { method, url, headers, socket, resume } as unknown as IncomingMessage;
  const isServed = openDrainRequests({ end }).serve(request, response as unknown as ServerResponse);
  return { status: isServed ? status : 404, seconds };
}

for (const [name, peer] of Object.entries<Peer>({
  'the loopback address': { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' },
  'the loopback address of IPv6': { remoteAddress: '::1', localAddress: '::1' },
  'the loopback address of IPv4 in IPv6': { remoteAddress: '::ffff:127.0.0.1' },
  'a socket file': {},
})) {
  test(`a request from ${name} drains`, () => {
    const headers = { host: 'localhost' };
    assert.equal(ask({ peer, headers }), { status: 202, seconds: 600 });
  });
}

for (const [name, asked, status] of [
  ['another machine', { peer: { remoteAddress: '10.0.0.8' } }, 403],
  [
    "the machine's own address",
    { peer: { remoteAddress: '10.0.0.7', localAddress: '10.0.0.7' } },
    403,
  ],
  ['the address of a proxy beside it', { peer: { remoteAddress: '127.0.0.6' } }, 403],
  ['a page of another site', { headers: { host: '127.0.0.1:9464', origin: 'http://x.org' } }, 403],
  ['a page by a name of its own', { headers: { host: 'x.org:9464' } }, 403],
  ['a GET', { method: 'GET' }, 405],
  ['no time', { url: '/drain?seconds=0' }, 409],
  ['a time that is none', { url: '/drain?seconds=1e3' }, 400],
  ['a time of more than a day', { url: '/drain?seconds=86401' }, 400],
  ['another path', { url: '/drains' }, 404],
  ['a path that is no URL', { url: '//' }, 404],
  ['a URL with a wrong host', { url: 'http://[/drain' }, 404],
] satisfies [string, Asked, number][]) {
  test(`a request with ${name} is refused and drains nothing`, () => {
    assert.equal(ask(asked), { status, seconds: undefined });
  });
}

test('a process whose readiness is elsewhere answers only that it lives', () => {
  assert.is(ask({ method: 'GET', url: '/healthz' }).status, 200);
  assert.is(ask({ method: 'GET', url: '/readyz' }).status, 404);
});

test.run();
