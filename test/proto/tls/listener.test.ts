/** Who finds a place at a TLS listener while others open connections, and what is logged. */
import { readFileSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { listenTls } from '../../../proto/tls/listener.ts';
import { openRefusals } from '../../../proto/tls/refusals.ts';
import { until } from '../../support/poll.ts';
import { openPairs } from '../../support/service/apart/pairs.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('proto/tls/listener');
const HOST = '127.0.0.2';
/** Of peers. */
const [RUNNER, FLOOD, OTHER] = ['127.0.0.4', '127.0.0.5', '127.0.0.6'];

async function open(places: { handshakes: number; open: number }) {
  await using opened = new AsyncDisposableStack();
  const dir = opened.use(tempDirectory());
  const { ca, pair } = await openPairs(join(dir.path, 'certs'));
  const warned: string[] = [];
  const warn = (...said: unknown[]) => void warned.push(JSON.stringify(said));
  const log = Object.assign(openLog({ role: 'core', level: 'silent' }), { warn });
  const where = { host: HOST, port: 0 };
  const served: TLSSocket[] = [];
  const files = await pair([HOST]);
  const options = { where, files, clientCa: ca, protocol: 'h2', log, places } as const;
  const listener = await listenTls(options, (socket) => served.push(socket));
  const sockets: Socket[] = [];
  opened.defer(async () => {
    for (const socket of [...sockets, ...served]) socket.destroy();
    await listener[Symbol.asyncDispose]();
  });
  const read = ({ path }: { path: string }) => readFileSync(path);
  const own = await pair(['r1']);
  const how = { host: HOST, port: listener.port, ALPNProtocols: ['h2'], ca: read(ca) };
  const keep = <S extends Socket>(socket: S): S => {
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  const kept = opened.move();
  return {
    warned,
    served,
    /** A connection without a handshake. */
    plain: (localAddress: string) => keep(connectPlain({ ...how, localAddress })),
    /** Whether a client with a certificate is served. */
    async isServed(localAddress: string): Promise<boolean> {
      const keys = { cert: read(own.cert), key: read(own.key) };
      const options = { ...how, ...keys, localAddress };
      const socket = keep(connect(options));
      const before = served.length;
      await until(() => served.length > before || socket.destroyed);
      return served.length > before;
    },
    /** A client without a certificate. */
    async refused(localAddress: string): Promise<void> {
      const options = { ...how, localAddress };
      const socket = keep(connect(options).resume());
      await until(() => socket.destroyed);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test('connections without a handshake do not keep out a peer with a certificate', async () => {
  await using app = await open({ handshakes: 16, open: 16 });
  const flood = Array.from({ length: 40 }, () => app.plain(FLOOD).resume());
  const held = () => flood.filter(({ destroyed }) => !destroyed).length;
  await until(() => held() <= 8); // half of the places
  for (let n = 0; n < 3; n += 1) assert.is(await app.isServed(RUNNER), true);
});

test('open connections of one address leave places for another; closed ones are free', async () => {
  await using app = await open({ handshakes: 16, open: 8 });
  let held = 0;
  while (await app.isServed(FLOOD)) held += 1;
  assert.is(held, 4);
  assert.is(await app.isServed(RUNNER), true);
  assert.is(await app.isServed(OTHER), true);
  assert.is(await app.isServed(FLOOD), false, 'no place of the others');
  for (const socket of app.served.splice(0)) socket.destroy();
  await until(() => app.isServed(FLOOD));
});

test('each handshake that ends frees its place', async () => {
  await using app = await open({ handshakes: 4, open: 4 });
  for (let n = 0; n < 12; n += 1) {
    await app.refused(FLOOD);
    assert.is(await app.isServed(RUNNER), true);
    for (const socket of app.served.splice(0)) socket.destroy();
  }
  assert.is(app.warned.length, 1, 'one line of twelve refusals');
  assert.match(app.warned[0] ?? '', /"count":1.*refused a certificate that ca\.crt does not allow/);
});

test('refusals are counted, a line per reason and period, and none is left out', () => {
  const lines: [string, number][] = [];
  const log = openLog({ role: 'core', level: 'silent' });
  const warn = ({ reason, count }: { reason: string; count: number }) =>
    void lines.push([reason, count]);
  {
    using refusals = openRefusals(Object.assign(log, { warn }));
    for (let n = 0; n < 1_000; n += 1) refusals.add(n % 2 ? 'expired' : 'unknown', 'refused');
    assert.equal(lines.splice(0), [
      ['unknown', 1],
      ['expired', 1],
    ]);
  }
  assert.equal(lines, [
    ['unknown', 499],
    ['expired', 499],
  ]);
});

test('the count of a period is logged at its end', async () => {
  const lines: number[] = [];
  const log = openLog({ role: 'core', level: 'silent' });
  const warn = ({ count }: { count: number }) => void lines.push(count);
  using refusals = openRefusals(Object.assign(log, { warn }), 1);
  for (let n = 0; n < 3; n += 1) refusals.add('expired', 'refused');
  await until(async () => lines.length === 2);
  assert.equal(lines, [1, 2]);
});

test.run();
