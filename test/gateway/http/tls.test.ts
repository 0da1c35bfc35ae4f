/** TLS from certificate files: links are https and wss, sessions connect, SIGHUP reloads. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import { gatewayConfig } from '../../../gateway/config.ts';
import { type ServerTimes, startGateway } from '../../../gateway/main.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { setVariable } from '../../../proto/common/settings/sources.ts';
import { boot, HOLDER, KEY } from '../../core/boot.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { authority, type Certificate } from '../../support/servers/certificates.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/http/tls');

async function openSecure(publicUrl?: string, times?: ServerTimes) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const app = cleanup.use(await boot());
  const ca = await authority();
  const [certFile, keyFile] = [join(dir.path, 'cert.pem'), join(dir.path, 'key.pem')];
  const write = ({ cert, key }: Certificate) => {
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  write(await ca.issue());
  const files = { TABERN_TLS_CERT_FILE: certFile, TABERN_TLS_KEY_FILE: keyFile };
  const address = publicUrl === undefined ? {} : { TABERN_PUBLIC_URL: publicUrl };
  const gateway = await startGateway(gatewayConfig({ TABERN_PORT: '0', ...files, ...address }), {
    clients: app.clients,
    ...(times && { times }),
    gatewayToken: String(app.asGateway.metadata?.['authorization']).slice('Bearer '.length),
    log: openLog({ role: 'test', level: 'silent' }),
    handOver: () => {
      throw new Error('a connection over TLS was handed off');
    },
  });
  cleanup.use(gateway);
  const post = async (path: string): Promise<Record<string, string>> => {
    const headers = { 'x-svc-api-key': KEY };
    const sent = httpsRequest(`${gateway.url}${path}`, { method: 'POST', ca: ca.cert, headers });
    sent.end();
    const [answer] = await once(sent, 'response');
    return JSON.parse(await text(answer));
  };
  /** The fingerprint of the certificate on a new connection. */
  const shown = async (): Promise<string> => {
    const { port } = new URL(gateway.url);
    const socket: TLSSocket = connect({ port: Number(port), host: '127.0.0.1', ca: ca.cert });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  const kept = cleanup.move();
  return {
    app,
    ca,
    dir: dir.path,
    write,
    gateway,
    post,
    shown,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test("the console's cookie is Secure, and counts only for the https origin", async () => {
  await using secure = await openSecure();
  const { ca, gateway } = secure;
  const send = async (method: string, path: string, headers: object, body?: string) => {
    const own = { 'sec-fetch-site': 'same-origin', ...headers };
    const sent = httpsRequest(`${gateway.url}${path}`, { method, ca: ca.cert, headers: own });
    sent.end(body);
    const [answer] = await once(sent, 'response');
    await text(answer);
    return answer;
  };
  const logIn = (origin: string) => {
    const headers = { origin, 'content-type': 'application/json' };
    return send('POST', '/console/login', headers, JSON.stringify({ apiKey: KEY }));
  };
  const [set] = (await logIn(gateway.url)).headers['set-cookie'];
  assert.match(set, /^__Host-tabern=[\w-]{43}; Path=\/; .*; Secure$/);
  const [cookie] = set.split(';');
  assert.is((await send('GET', '/console/api/v1/me', { cookie })).statusCode, 200);
  const plain = cookie.replace('__Host-', '');
  assert.is((await send('GET', '/console/api/v1/me', { cookie: plain })).statusCode, 401);
  assert.is((await logIn(gateway.url.replace('https', 'http'))).statusCode, 403);
});

test('links are https and wss, and connect a client to its session', async () => {
  await using secure = await openSecure();
  const { app, ca, gateway, post } = secure;
  assert.match(gateway.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  assert.ok((await post('/v1/contexts'))['uploadUrl']?.startsWith(`${gateway.url}/v1/contexts/`));
  const path = join(secure.dir, 'sessions.sock');
  const runner = createServer().listen(path);
  const sockets = new WebSocketServer({ server: runner });
  sockets.on('connection', (socket) => socket.on('message', (said) => socket.send(`${said}!`)));
  await app.clients.runners.registerRunner({ ...HOLDER, address: `unix:${path}` }, app.asRunner);
  const creating = post('/v1/sessions');
  const { leaseId } = must((await app.lease('SESSION', 25_000))[0], 'a session');
  const startMs = app.clock.now();
  await app.clients.runners.startSession({ leaseId, startMs }, app.asRunner);
  const { connectUrl = '' } = await creating;
  assert.ok(connectUrl.startsWith(`${gateway.url.replace('https', 'wss')}/connect?`), connectUrl);
  const client = new WebSocket(connectUrl, { ca: ca.cert });
  await once(client, 'open');
  client.send('hello');
  assert.is(String((await once(client, 'message'))[0]), 'hello!');
  client.close();
  await once(client, 'close');
  for (const one of sockets.clients) one.terminate();
  runner.close();
});

test('TABERN_PUBLIC_URL takes precedence over the address of the request', async () => {
  await using secure = await openSecure('http://tabern.example/api');
  const { uploadUrl = '' } = await secure.post('/v1/contexts');
  assert.ok(uploadUrl.startsWith('http://tabern.example/api/v1/contexts/'), uploadUrl);
});

test('SIGHUP reloads the files; a pair that does not match leaves the old one in use', async () => {
  await using secure = await openSecure();
  const first = await secure.shown();
  const next = await secure.ca.issue();
  secure.write(next);
  assert.is(await secure.shown(), first, 'not before the signal');
  process.emit('SIGHUP');
  await until(async () => (await secure.shown()) !== first);
  const second = await secure.shown();
  secure.write({ ...(await secure.ca.issue()), key: next.key });
  process.emit('SIGHUP');
  assert.is(await secure.shown(), second);
});

test('a connection in plain HTTP is closed, and others are served', async () => {
  await using secure = await openSecure();
  const plain = fetch(secure.gateway.url.replace('https', 'http'));
  assert.ok(await errorOf(plain));
  assert.ok((await secure.post('/v1/contexts'))['id']);
});

test('a silent connection is closed before its TLS handshake', async () => {
  const times = { headersMs: 300, idleMs: 600_000, checkMs: 50 };
  await using secure = await openSecure(undefined, times);
  const silent = connectPlain(Number(new URL(secure.gateway.url).port), '127.0.0.1');
  silent.on('error', () => undefined).resume();
  await until(() => silent.closed);
});

test('a missing file, one file without the other, and no pair stop the start', async () => {
  await using secure = await openSecure();
  const one = { TABERN_TLS_CERT_FILE: '/nowhere/cert.pem' };
  assert.throws(
    () => gatewayConfig(one),
    (error: unknown) => error instanceof ConfigError,
  );
  const missing = await refusedStart(secure, { ...one, TABERN_TLS_KEY_FILE: '/nowhere' });
  assert.match(missing, 'TABERN_TLS_CERT_FILE: cannot read /nowhere/cert.pem');
  const certFile = join(secure.dir, 'cert.pem');
  const files = { TABERN_TLS_CERT_FILE: certFile, TABERN_TLS_KEY_FILE: certFile };
  const unpaired = await refusedStart(secure, files);
  assert.match(unpaired, 'TABERN_TLS_CERT_FILE and TABERN_TLS_KEY_FILE: ');
});

test('the error names the flag that gave the path', async () => {
  await using secure = await openSecure();
  const env = { TABERN_TLS_KEY_FILE: join(secure.dir, 'key.pem') };
  const flag = { from: 'flag', label: '--tls-cert-file' } as const;
  setVariable(env, 'TABERN_TLS_CERT_FILE', { value: '/nowhere/by-flag.pem', ...flag });
  const missing = await refusedStart(secure, env);
  assert.match(missing, '--tls-cert-file: cannot read /nowhere/by-flag.pem');
  setVariable(env, 'TABERN_TLS_CERT_FILE', { value: env.TABERN_TLS_KEY_FILE, ...flag });
  const unpaired = await refusedStart(secure, env);
  assert.match(unpaired, '--tls-cert-file and TABERN_TLS_KEY_FILE: ');
});

/** The error of a start that is refused. */
async function refusedStart(
  { app }: Pick<Awaited<ReturnType<typeof openSecure>>, 'app'>,
  env: Record<string, string>,
): Promise<string> {
  const log = openLog({ role: 'test', level: 'silent' });
  const parts = { clients: app.clients, gatewayToken: 't', log };
  const config = gatewayConfig({ ...env, TABERN_PORT: '0' });
  return String(await errorOf(startGateway(config, parts)));
}

test.run();
