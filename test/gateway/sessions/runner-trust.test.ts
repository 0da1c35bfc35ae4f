/** A session server with TLS: the gateway connects to the runner that core names, and no other. */
import { once } from 'node:events';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { callSessionServer, type SessionPlace } from '../../../gateway/sessions/runner-client.ts';
import { openRunnerTrust } from '../../../gateway/sessions/runner-trust.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { type Log, openLog } from '../../../proto/common/log.ts';
import { coreTls } from '../../../proto/tls/core-tls.ts';
import { readConfig } from '../../../runner/config.ts';
import { runnerId } from '../../../runner/machine/runner-id.ts';
import * as keyAuthenticated from '../../../runner/sessions/server/key-authenticated-server.ts';
import { faultOf } from '../../support/fault.ts';
import { freePort } from '../../support/port.ts';
import {
  callerVariables,
  EXPIRED,
  openPairs,
  type Pairs,
} from '../../support/service/apart/pairs.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/sessions/runner-trust');
const silent = openLog({ role: 'test', level: 'silent' });
const HOST = '127.0.0.3';
const SHORT = { headersMs: 50, checkMs: 50 };
const ID = 'runner-1';
const TOKEN = { TABERN_RUNNER_TOKEN: 'x'.repeat(32) };

/** A session server with the pair, and a gateway that trusts the authorities of `trusted`. */
async function open(
  pairOf: (pairs: Pairs) => ReturnType<Pairs['pair']>,
  trusted?: 'others',
  times?: typeof SHORT,
) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const pairs = await openPairs(join(dir.path, 'own'));
  const others = await openPairs(join(dir.path, 'others'));
  const tls = await pairOf(pairs);
  const place = { host: HOST, port: await freePort(), tls, log: silent };
  const routes: keyAuthenticated.Routes<string> = {
    upgrade: (_, { socket }) => void socket.end(),
    answer(registered, { response }) {
      response.writeHead(200).end(JSON.stringify(registered));
      return true;
    },
    unauthorized: { statusCode: 410, message: 'gone' },
  };
  const opening = keyAuthenticated.openKeyAuthenticatedServer(place, routes, times);
  const server = cleanup.use(await opening);
  cleanup.use(server.register('the key', 'welcome'));
  const warnings: string[] = [];
  const log = { warn: (_: object, text: string) => warnings.push(text) } as unknown as Log;
  const { ca } = trusted === undefined ? pairs : others;
  const trust = openRunnerTrust(coreTls(callerVariables(ca)), log);
  const { signal } = new AbortController();
  const call = (runner = ID, address = `tls:${HOST}:${place.port}`) => {
    const at: SessionPlace = { address, signingKey: 'the key', runnerId: runner, trust };
    return callSessionServer(at, { method: 'GET', path: '/targets', signal });
  };
  const kept = cleanup.move();
  const close = () => kept.disposeAsync();
  return { call, warnings, pairs, tls, place, [Symbol.asyncDispose]: close };
}

test('a runner with a certificate for its id is answered, over TLS only', async () => {
  await using app = await open(({ pair }) => pair([ID]));
  assert.is(await app.call(), 'welcome');
  const plain = await faultOf(app.call(ID, `${HOST}:${app.place.port}`));
  assert.is(plain.reason, 'BROWSER_FAILED');
  assert.is(await app.call(), 'welcome');
});

test('another runner at the address is refused, whoever issued its certificate', async () => {
  await using other = await open(({ pair }) => pair(['runner-2']));
  assert.is((await faultOf(other.call())).reason, 'BROWSER_FAILED');
  assert.match(other.warnings.join(), /another name than its id: see TABERN_RUNNER_ID$/);
  await using stranger = await open(({ pair }) => pair([ID]), 'others');
  assert.is((await faultOf(stranger.call())).reason, 'BROWSER_FAILED');
  assert.match(stranger.warnings.join(), /not of the authorities of TABERN_CORE_CA_FILE$/);
  await using expired = await open(({ pair }) => pair([ID], EXPIRED));
  assert.is((await faultOf(expired.call())).reason, 'BROWSER_FAILED');
  assert.match(expired.warnings.join(), /not valid now: renew its TABERN_CORE_CLIENT_CERT_FILE$/);
});

test('a connection that sends no request is closed', async () => {
  await using app = await open(({ pair }) => pair([ID]), undefined, SHORT);
  const ca = readFileSync(app.pairs.ca.path);
  const { host, port } = app.place;
  const socket = connect({ host, port, ca, servername: ID, ALPNProtocols: ['http/1.1'] });
  socket.on('error', () => undefined).resume();
  socket.write('GET /targets HTTP/1.1\r\n');
  await once(socket, 'close');
});

test('SIGHUP reloads the certificate of a session server', async () => {
  await using app = await open(({ pair }) => pair([ID], EXPIRED));
  await faultOf(app.call());
  const renewed = await app.pairs.pair([ID]);
  copyFileSync(renewed.cert.path, app.tls.cert.path);
  copyFileSync(renewed.key.path, app.tls.key.path);
  process.emit('SIGHUP');
  assert.is(await app.call(), 'welcome');
});

test('without TLS a session server listens on loopback only', () => {
  const listen = (TABERN_RUNNER_LISTEN: string) => readConfig({ ...TOKEN, TABERN_RUNNER_LISTEN });
  assert.is(listen('127.0.0.1:9000').listen?.tls, undefined);
  for (const place of ['10.1.2.3:9000', 'runner.internal:9000', '[2001:db8::1]:9000']) {
    assert.throws(
      () => listen(place),
      (error: Error) =>
        error instanceof ConfigError &&
        /^TABERN_RUNNER_LISTEN needs TLS on .*TABERN_CORE_CLIENT_CERT_FILE/.test(error.message),
      place,
    );
  }
});

test('a runner whose certificate has another name than its id does not start', async () => {
  await using dir = tempDirectory();
  const { ca, pair } = await openPairs(dir.path);
  const own = await pair(['runner-1', '*.runners.internal']);
  const idOf = (more: Record<string, string>) => {
    const listen = { TABERN_RUNNER_LISTEN: '127.0.0.3:9000', TABERN_DATA: dir.path };
    return runnerId(
      readConfig({ ...TOKEN, ...listen, ...callerVariables(ca, own), ...more }),
      silent,
    );
  };
  assert.is(idOf({ TABERN_RUNNER_ID: 'runner-1' }), 'runner-1');
  assert.is(idOf({ TABERN_RUNNER_ID: 'a.runners.internal' }), 'a.runners.internal');
  for (const more of [{ TABERN_RUNNER_ID: 'runner-2' }, {}]) {
    assert.throws(
      () => idOf(more),
      /^TABERN_CORE_CLIENT_CERT_FILE is not a certificate for .*: set TABERN_RUNNER_ID/,
    );
  }
  assert.throws(
    () => idOf({ TABERN_RUNNER_ID: 'Runner 1' }),
    /^TABERN_RUNNER_ID must be lower-case/,
  );
});

test.run();
