/** Refused connections of a browser, and their cost in the runner's thread. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { EgressRules, Refusal } from '../../../../runner/jail/egress/dial.ts';
import { refuse } from '../../../../runner/jail/egress/http-forward.ts';
import {
  encodeNetError,
  type GivenErrors,
  type NetError,
  restoreNetErrors,
} from '../../../../runner/jail/egress/net-errors.ts';
import { until } from '../../../support/poll.ts';

const test = suite('runner/jail/egress/net-errors');

const ERRORS: NetError[] = [
  ...(['NAME_NOT_RESOLVED', 'CONNECTION_REFUSED', 'CONNECTION_TIMED_OUT'] as const),
  ...(['ADDRESS_UNREACHABLE', 'BLOCKED_BY_CLIENT', 'PROXY_CONNECTION_FAILED'] as const),
];

function given(error: NetError, denied: [string, string][] = []): GivenErrors {
  return { errors: new Set([error]), deniedHosts: new Map(denied) };
}

test('a response is one buffer for all connections', () => {
  for (const error of ERRORS) {
    for (const isTunnel of [false, true]) {
      const answer = encodeNetError(error, isTunnel);
      assert.ok(Buffer.isBuffer(answer));
      assert.is(encodeNetError(error, isTunnel), answer, error);
      assert.match(answer.toString('latin1'), /^HTTP\/1\.1 [234]\d\d -\r\n.*\r\n\r\n$/s);
    }
  }
});

test('a plain request never gets a 407, which Chrome may show as a page', () => {
  for (const error of ERRORS) assert.not.match(encodeNetError(error).toString('latin1'), / 407 /);
});

test('a code is replaced only by an error that the egress has sent', () => {
  const raw = Buffer.from('{"params":{"errorText":"net::ERR_RESPONSE_HEADERS_TOO_BIG"}}');
  assert.is(restoreNetErrors(raw, given('NAME_NOT_RESOLVED')), raw);
  const shown = restoreNetErrors(raw, given('CONNECTION_TIMED_OUT')).toString();
  assert.is(shown, '{"params":{"errorText":"net::ERR_CONNECTION_TIMED_OUT"}}');
});

const DENIED = 'inner.test is not reachable from here: "private"';

/** A report of Chrome's console about that address. */
function reportOf(text: string, url: string): Buffer {
  return Buffer.from(JSON.stringify({ params: { entry: { text, url } } }));
}

test('a console message about a denied host has the reason, one about another has none', () => {
  const known = given('ADDRESS_UNREACHABLE', [['inner.test', DENIED]]);
  const textOf = (text: string, url: string): string => {
    const shown = restoreNetErrors(reportOf(text, url), known).toString();
    return (JSON.parse(shown) as { params: { entry: { text: string } } }).params.entry.text;
  };
  const code = 'net::ERR_RESPONSE_HEADERS_MULTIPLE_CONTENT_LENGTH';
  const failed = `Failed to load resource: ${code}`;
  const restored = 'Failed to load resource: net::ERR_ADDRESS_UNREACHABLE';
  assert.is(textOf(failed, 'https://inner.test:8443/a'), `${restored}: ${DENIED}`);
  for (const url of ['https://far.test/', 'https://far.test/?inner.test', 'nothing']) {
    assert.is(textOf(failed, url), restored, url);
  }
  const socket = "WebSocket connection to 'wss://inner.test/' failed: Error in connection";
  const shown = textOf(`${socket} establishment: ${code}`, 'https://far.test/page.js');
  assert.match(shown, `net::ERR_ADDRESS_UNREACHABLE: ${DENIED}`);
});

/** Refused connections, which read the response and connect again. */
const FLOOD = `
const { workerData: { port, count }, parentPort } = require('node:worker_threads');
const { connect } = require('node:net');
let answers = 0;
const ask = () => {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => socket.destroy());
  socket.on('data', () => undefined);
  socket.on('close', () => {
    answers += 1;
    if (answers % 100 === 0) parentPort.postMessage(answers);
    ask();
  });
};
for (let at = 0; at < count; at += 1) ask();
`;

const TIMED_OUT = { code: 502, why: 'far.test does not answer', error: 'CONNECTION_TIMED_OUT' };

/** A server that refuses connections as a browser's egress does, with the longest answer. */
async function openServer() {
  const way = { isBrowser: true } as EgressRules;
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    refuse(way, socket, TIMED_OUT as Refusal);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

test('a flood of refused connections does not delay a second tenant', async () => {
  const { server, port } = await openServer();
  const echo = createServer((socket) => void socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const flood = new Worker(FLOOD, { eval: true, workerData: { port, count: 50 } });
  let answers = 0;
  flood.on('message', (count: number) => {
    answers = count;
  });
  const tenant = connect((echo.address() as AddressInfo).port, '127.0.0.1');
  await once(tenant, 'connect');
  await until(() => answers > 0);
  const trips: number[] = [];
  const [cpu, first] = [process.threadCpuUsage(), answers];
  while (answers < first + 1_000) {
    const at = performance.now();
    tenant.write('x');
    await once(tenant, 'data');
    trips.push(performance.now() - at);
  }
  const { user, system } = process.threadCpuUsage(cpu);
  const cpuUs = (user + system) / (answers - first);
  const slowest = Math.max(...trips);
  await flood.terminate();
  tenant.destroy();
  for (const open of [server, echo]) open.close();
  if (process.env['COST']) {
    const p99 = trips.sort((a, b) => a - b)[Math.floor(trips.length * 0.99)];
    console.log({ cpuUs, slowest, p99, answers });
  }
  assert.ok(slowest < 1_000, `the slowest round trip took ${slowest} ms`);
});

test.run();
