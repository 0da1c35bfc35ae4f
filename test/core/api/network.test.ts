/** Core at TABERN_CORE_LISTEN: who reaches it, why others do not, and renewed certificates. */

import { once } from 'node:events';
import { copyFileSync, readFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../core/main.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { coreProblem } from '../../../proto/rpc/core-problem.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../proto/rpc/services.ts';
import { coreTls } from '../../../proto/tls/core-tls.ts';
import { errorOf, faultOf } from '../../support/fault.ts';
import { freePort } from '../../support/port.ts';
import {
  callerVariables,
  coreVariables,
  EXPIRED,
  openPairs,
  type Pairs,
} from '../../support/service/apart/pairs.ts';
import { tempDirectory } from '../../support/temp.ts';
import { configOn, KEY } from '../boot.ts';

const test = suite('core/api/network');
const log = openLog({ role: 'core', level: 'silent' });
const keyed = { metadata: { 'x-svc-api-key': KEY } };
const HOST = '127.0.0.2';

/** Core with mTLS, and callers of it. */
async function open(more: { isExpired?: true; names?: [string, ...string[]] } = {}) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const [pairs, others] = [
    await openPairs(join(dir.path, 'own')),
    await openPairs(join(dir.path, 'other')),
  ];
  const own = await pairs.pair(more.names ?? [HOST], more.isExpired && EXPIRED);
  const where = `${HOST}:${await freePort()}`;
  const config = configOn(join(dir.path, 'data'), {
    TABERN_API_KEY: KEY,
    TABERN_CORE_LISTEN: where,
    ...coreVariables(own, pairs.ca),
  });
  cleanup.use(await startCore(config, log));
  const token = readFileSync(join(dir.path, 'data', 'keys', 'runner.token'), 'utf8').trim();
  const asRunner = { metadata: { authorization: `Bearer ${token}` } };
  const kept = cleanup.move();
  /** Over a connection of its own; its authorities, and its pair. */
  const clientOf = (variables: Record<string, string>) => {
    const tls = coreTls(variables);
    const channel = new Channel(where, tls);
    const { projects, runners } = remoteClients(channel);
    const link = { core: where, coreTls: tls, tokenSetting: 'TABERN_GATEWAY_TOKEN' };
    const list = () => projects.listProjects({}, keyed);
    return {
      list,
      runners,
      problemOf: async (call: Promise<unknown>) => coreProblem(await faultOf(call), link),
      problem: async () => coreProblem(await faultOf(list()), link),
      [Symbol.dispose]: () => channel[Symbol.dispose](),
    };
  };
  const clients = { clientOf, asRunner };
  return {
    pairs,
    others,
    own,
    where,
    ...clients,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test('a caller with a certificate of the authority is answered, over TLS', async () => {
  await using app = await open();
  const pair = await app.pairs.pair(['gateway']);
  using client = app.clientOf(callerVariables(app.pairs.ca, pair));
  assert.is((await client.list()).projects.length, 1);
  const [host = '', port] = app.where.split(':');
  const plain = connectPlain({ host, port: Number(port) });
  plain.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const answered: Buffer[] = [];
  plain.on('data', (bytes) => answered.push(bytes)).on('error', () => undefined);
  await once(plain, 'close');
  // at most an alert: type 21
  assert.ok(Buffer.concat(answered).length === 0 || answered[0]?.[0] === 21, 'no HTTP/2 in plain');
});

type Broken = (
  pairs: Pairs,
  others: Pairs,
) => Promise<Record<string, string>> | Record<string, string>;

const REFUSED: Record<string, [Broken, RegExp]> = {
  'no certificate': [
    ({ ca }) => callerVariables(ca),
    /^core requires a client certificate: set TABERN_CORE_CLIENT_CERT_FILE/,
  ],
  "another authority's certificate": [
    async ({ ca }, others) => callerVariables(ca, await others.pair(['gateway'])),
    /TABERN_CORE_CLIENT_CERT_FILE must be a certificate of the authorities/,
  ],
  'an expired certificate': [
    async ({ ca, pair }) => callerVariables(ca, await pair(['gateway'], EXPIRED)),
    /^TABERN_CORE_CLIENT_CERT_FILE is a certificate for .*: renew it$/,
  ],
  "another authority's list": [
    async ({ pair }, { ca }) => callerVariables(ca, await pair(['gateway'])),
    /^core has a certificate that the authorities of TABERN_CORE_CA_FILE did not issue$/,
  ],
  'no TLS': [() => ({}), /^core closed the connection: .* set TABERN_CORE_CA_FILE$/],
};

test('each other caller is refused in the handshake, by a sentence with a setting', async () => {
  await using app = await open();
  for (const [name, [broken, sentence]] of Object.entries(REFUSED)) {
    using client = app.clientOf(await broken(app.pairs, app.others));
    assert.match((await client.problem()) ?? '', sentence, name);
  }
  const pair = await app.pairs.pair(['gateway']);
  using good = app.clientOf(callerVariables(app.pairs.ca, pair));
  assert.is((await good.list()).projects.length, 1, 'core serves all the same');
});

test('a caller without a valid key is refused before its request is read', async () => {
  await using app = await open();
  const pair = await app.pairs.pair(['gateway']);
  const read = ({ path }: { path: string }) => readFileSync(path);
  const files = { ca: read(app.pairs.ca), cert: read(pair.cert), key: read(pair.key) };
  const connection = connectHttp2(`https://${app.where}`, files);
  const call = connection.request({
    ':method': 'POST',
    ':path': '/tabern.v1.ProjectService/ListProjects',
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': '20S',
    authorization: `Bearer ${'x'.repeat(43)}`,
  });
  call.write(Buffer.from([0, 0, 0x0f, 0, 0])); // a message of almost 1 MiB, which never comes
  const [headers] = await once(call, 'response');
  assert.is(headers['grpc-status'], '16', 'UNAUTHENTICATED, not DEADLINE_EXCEEDED');
  connection.destroy();
});

test('an expired certificate of core, or one for another host, is not trusted', async () => {
  await using expired = await open({ isExpired: true });
  const pair = await expired.pairs.pair(['gateway']);
  using client = expired.clientOf(callerVariables(expired.pairs.ca, pair));
  assert.match((await client.problem()) ?? '', /not valid now: renew .*TABERN_CORE_TLS_CERT_FILE/);
  await using other = await open({ names: ['core.internal'] });
  const second = await other.pairs.pair(['gateway']);
  using named = other.clientOf(callerVariables(other.pairs.ca, second));
  assert.match((await named.problem()) ?? '', /without that name/);
});

test('SIGHUP reloads the certificate, and open connections go on', async () => {
  await using app = await open();
  const pair = await app.pairs.pair(['gateway']);
  using client = app.clientOf(callerVariables(app.pairs.ca, pair));
  await client.list();
  const before = await serialOf(app.where, app.pairs, pair);
  const renewed = await app.pairs.pair([HOST]);
  copyFileSync(renewed.cert.path, app.own.cert.path);
  process.emit('SIGHUP');
  assert.is(await serialOf(app.where, app.pairs, pair), before, 'a pair that does not match');
  copyFileSync(renewed.key.path, app.own.key.path);
  process.emit('SIGHUP');
  assert.is.not(await serialOf(app.where, app.pairs, pair), before);
  await client.list();
});

async function serialOf(
  where: string,
  { ca }: Pairs,
  { cert, key }: Awaited<ReturnType<Pairs['pair']>>,
) {
  const [host = '', port] = where.split(':');
  const read = ({ path }: { path: string }) => readFileSync(path);
  const files = { ca: read(ca), cert: read(cert), key: read(key) };
  const socket = connect({ host, port: Number(port), ALPNProtocols: ['h2'], ...files });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

test('a runner is one that its certificate names, whatever its token', async () => {
  await using app = await open();
  const { asRunner } = app;
  const instanceId = 'first';
  for (const [name, own, other] of [
    ['r1', 'r1', 'r2'],
    ['*.runners.internal', 'r1.runners.internal', 'r1.x.runners.internal'],
    ['10.0.0.6', '10.0.0.6', '10.0.0.7'],
  ] as const) {
    const pair = await app.pairs.pair([name]);
    using client = app.clientOf(callerVariables(app.pairs.ca, pair));
    const { runners } = client;
    const callsOf = (holder: { runnerId: string; instanceId: string }) => [
      () => runners.registerRunner(holder, asRunner),
      () => runners.leaseWork({ ...holder, kind: 'BUILD', max: 1, waitMs: 0 }, asRunner),
      () => runners.reportRunner({ ...holder, leaseIds: [] }, asRunner),
      () => runners.awaitReleases({ ...holder, knownLeaseIds: [], waitMs: 0 }, asRunner),
      () => runners.awaitHandoffs({ ...holder, knownIds: [], waitMs: 0 }, asRunner),
    ];
    for (const call of callsOf({ runnerId: own, instanceId })) await call();
    for (const call of callsOf({ runnerId: other, instanceId })) {
      const fault = await faultOf(call());
      assert.is(fault.facts['field'], 'runnerId', `${name} ${other}`);
      assert.match(fault.message, /must be a name of the client certificate/);
    }
    const refused = runners.registerRunner({ runnerId: other, instanceId }, asRunner);
    assert.match((await client.problemOf(refused)) ?? '', /^TABERN_RUNNER_ID must be a name of/);
  }
});

test('plain TCP is refused but on loopback', async () => {
  await using dir = tempDirectory();
  const plain = (where: string) =>
    configOn(dir.path, { TABERN_API_KEY: KEY, TABERN_CORE_LISTEN: where });
  for (const host of ['10.1.2.3', '0.0.0.0', '[::]', 'core.internal', '128.0.0.1']) {
    assert.throws(
      () => plain(`${host}:7447`),
      (error: Error) =>
        error instanceof ConfigError &&
        /^TABERN_CORE_LISTEN needs TLS on .*: set TABERN_CORE_TLS_CERT_FILE/.test(error.message),
      host,
    );
  }
  const where = `127.0.0.1:${await freePort()}`;
  await using core = await startCore(plain(where), log);
  assert.match(core.address, /^unix:/, 'the socket file is served, too');
  using channel = new Channel(where);
  assert.is((await remoteClients(channel).projects.listProjects({}, keyed)).projects.length, 1);
});

test('a port that is taken is an error that names the setting', async () => {
  await using app = await open();
  await using dir = tempDirectory();
  const pair = await app.pairs.pair([HOST]);
  const config = configOn(dir.path, {
    TABERN_CORE_LISTEN: app.where,
    ...coreVariables(pair, app.pairs.ca),
  });
  const error = await errorOf(startCore(config, log));
  assert.match(
    String(error),
    /TABERN_CORE_LISTEN: cannot listen on 127\.0\.0\.2:\d+: .*EADDRINUSE/,
  );
});

test.run();
