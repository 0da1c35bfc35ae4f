/** The client of a resumable connection, against a service that the test plays. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import { is, match, ok } from 'uvu/assert';
import { type WebSocket, WebSocketServer } from 'ws';
import { resumable } from '../../../runner/resume/mod.ts';
import { until } from '../../support/poll.ts';

const test = suite('runner/resume/client');
const MIB = 'x'.repeat(1 << 20);

/** Accepts one WebSocket, and no further one. */
async function openService() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const accepted: WebSocket[] = [];
  server.on('connection', (socket) => {
    if (accepted.push(socket) > 1) return socket.terminate();
    const params = { token: 't', resumeMs: 60_000, keptMaxBytes: 1 };
    socket.send(JSON.stringify({ method: 'Tabern.resumable', params }));
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}/`,
    accepted,
    [Symbol.dispose]: () => {
      for (const socket of server.clients) socket.terminate();
      server.close();
    },
  };
}

test('commands that nobody acknowledges close the connection above 64 MiB', async () => {
  using service = await openService();
  const connection = await resumable(service.url);
  const closed = new Promise<string | undefined>((resolve) => {
    connection.onclose = resolve;
  });
  service.accepted[0]?.terminate();
  await until(() => service.accepted.length > 1); // it tries to resume
  for (let sent = 0; sent < 64; sent += 1) connection.send(MIB.slice(1));
  is(await Promise.race([closed, 'open']), 'open');
  connection.send(MIB);
  match(String(await closed), /64 MiB of commands/);
  const attempts = service.accepted.length;
  connection.send(MIB);
  ok(service.accepted.length <= attempts + 1, 'it does not go on to resume');
});

test.run();
