/** Refused connections of a browser: what their answers cost the runner's thread. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { EgressRules, Refusal } from '../../../../runner/jail/egress/dial.ts';
import { refuse } from '../../../../runner/jail/egress/http-forward.ts';
import {
  encodeNetError,
  type NetError,
  restoreNetErrors,
} from '../../../../runner/jail/egress/net-errors.ts';
import { until } from '../../../support/poll.ts';

const test = suite('runner/jail/egress/net-errors');

const ERRORS: NetError[] = [
  ...(['NAME_NOT_RESOLVED', 'CONNECTION_REFUSED', 'CONNECTION_TIMED_OUT'] as const),
  ...(['ADDRESS_UNREACHABLE', 'BLOCKED_BY_CLIENT', 'PROXY_CONNECTION_FAILED'] as const),
];

test('an answer is the same bytes for every connection', () => {
  for (const error of ERRORS) {
    for (const isTunnel of [false, true]) {
      const answer = encodeNetError(error, isTunnel);
      assert.ok(Buffer.isBuffer(answer));
      assert.is(encodeNetError(error, isTunnel), answer, error);
      assert.match(answer.toString('latin1'), /^HTTP\/1\.1 [234]\d\d -\r\n.*\r\n\r\n$/s);
    }
  }
});

test('a plain request is never answered by 407, which Chrome may show as a page', () => {
  for (const error of ERRORS) assert.not.match(encodeNetError(error).toString('latin1'), / 407 /);
});

test('an error that was not given is not put in the place of a code', () => {
  const raw = Buffer.from('{"params":{"errorText":"net::ERR_RESPONSE_HEADERS_TOO_BIG"}}');
  assert.is(restoreNetErrors(raw, new Set(['NAME_NOT_RESOLVED'])), raw);
  const shown = restoreNetErrors(raw, new Set(['CONNECTION_TIMED_OUT'])).toString();
  assert.is(shown, '{"params":{"errorText":"net::ERR_CONNECTION_TIMED_OUT"}}');
});

/** Connections that are refused, read the answer and come again. */
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

test('a flood of refused connections leaves a second tenant its turns', async () => {
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
