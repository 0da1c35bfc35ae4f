/**
 * hang-drip-infinite-gzip: an attempt at a hostile endpoint ends by its own deadlines, with the
 * cause in its outcome, and the next attempt at a good endpoint succeeds. Real sockets.
 */
import type { TlsOptions } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BUDGET } from '../../../gateway/webhooks/attempt.ts';
import { bootSend, PATIENT, SHORT } from '../../support/core/send.ts';
import { authority, selfSigned } from '../../support/servers/certificates.ts';
import {
  answering,
  type Behaviour,
  dripping,
  flooding,
  startHostile,
} from '../../support/servers/hostile.ts';

const hostile = suite('gateway/webhooks/hostile');

const OK = 'HTTP/1.1 200 OK\r\n';
const EMPTY = `${OK}content-length: 0\r\n\r\n`;
const CHUNK = Buffer.alloc(16_384, 'x');
/** 10 MiB of zeros in 10 KiB: the sender does not unpack it. */
const BOMB = gzipSync(Buffer.alloc(10 << 20));
const says = (text: string) => answering((socket) => void socket.write(text));

/**
 * The behaviour of an endpoint after the TLS handshake -> the allowed outcome, and its sentence.
 */
const KINDS: [name: string, behave: Behaviour, outcome: string, error: RegExp][] = [
  ['a hang before headers', () => {}, 'TIMEOUT', /^no answer within 0\.3 s$/],
  ['headers that drip', dripping(OK, 'x: y\r\n'), 'TIMEOUT', /^no answer within 0\.3 s$/],
  ['a status line that drips', dripping('HTTP/1.1', ' '), 'PROTOCOL', /not valid HTTP/],
  ['a body that drips', dripping(`${OK}content-length: 9999\r\n\r\n`, 'x'), 'OK', /^$/],
  ['a body without end', flooding(`${OK}\r\n`, CHUNK), 'OK', /^$/],
  [
    'a gzip bomb',
    answering((socket) => {
      socket.write(`${OK}content-encoding: gzip\r\ncontent-length: ${BOMB.length}\r\n\r\n`);
      socket.write(BOMB);
    }),
    'OK',
    /^$/,
  ],
  ['huge headers', says(`${OK}x: ${'x'.repeat(20_480)}\r\n\r\n`), 'PROTOCOL', /not valid HTTP/],
  ['headers without end', flooding(OK, `x: ${'y'.repeat(1_000)}\r\n`), 'PROTOCOL', /not valid/],
  ['a flood of 100', flooding('', 'HTTP/1.1 100 Continue\r\n\r\n'), 'PROTOCOL', /not valid/],
  ['a flood of 103', flooding('', 'HTTP/1.1 103 Hints\r\n\r\n'), 'TIMEOUT', /^no answer within/],
  [
    'an upgrade that was not requested',
    says('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    'PROTOCOL',
    /not valid HTTP/,
  ],
  [
    'two lengths',
    says(`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nx`),
    'PROTOCOL',
    /not valid HTTP/,
  ],
  [
    'a length and chunks',
    says(`${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`),
    'PROTOCOL',
    /not valid HTTP/,
  ],
  ['garbage', says('\0\x01 this is not HTTP\r\n\r\n'), 'PROTOCOL', /not valid HTTP/],
  ['an early close', answering((socket) => void socket.end()), 'RESET', /closed before an answer/],
  ['a close at once', (socket) => void socket.end(), 'RESET', /closed before an answer/],
  [
    'a cut after the headers',
    answering((socket) => {
      socket.write(`${OK}content-length: 100\r\n\r\nx`, () => socket.destroy());
    }),
    'OK',
    /^$/,
  ],
  // proto/spec/webhooks.md 10 counts it.
  ['an answer before the request', (socket) => void socket.write(EMPTY), 'OK', /^$/],
  [
    'an answer before the body is read',
    (socket) => void socket.once('data', () => socket.pause().write(EMPTY)),
    'OK',
    /^$/,
  ],
];

for (const [name, behave, outcome, error] of KINDS) {
  hostile(`hang-drip-infinite-gzip: ${name} is ${outcome}`, async () => {
    const ca = await authority();
    await using bad = await startHostile(behave, await ca.issue());
    await using app = await bootSend({ trust: ca.cert });
    const budget = outcome === 'TIMEOUT' ? SHORT : PATIENT;
    const result = await app.post(bad.url, undefined, budget);
    assert.is(result.outcome, outcome, result.error);
    assert.match(result.error, error);
    assert.ok(result.response.length <= 4_096);
    assert.is((await app.post()).outcome, 'OK', 'a good one after it');
  });
}

const OLD: TlsOptions = {
  minVersion: 'TLSv1',
  maxVersion: 'TLSv1.1',
  ciphers: 'DEFAULT@SECLEVEL=0',
};
/** How TLS may fail, the connection being all that there is. */
const TLS_KINDS: [name: string, tls: () => Promise<Shown>, error: RegExp][] = [
  ['a self-signed certificate', own(selfSigned), /^the certificate is self-signed$/],
  ['another name', issued({ names: ['elsewhere.example'] }), /^the certificate is for another/],
  ['an expired certificate', issued({ isExpired: true }), /^the certificate has expired$/],
  ['an authority nobody trusts', untrusted(), /^the certificate is of an unknown authority$/],
  ['TLS 1.1', issued({}, OLD), /^the TLS handshake failed$/],
];

for (const [name, tls, error] of TLS_KINDS) {
  hostile(`hang-drip-infinite-gzip: ${name} is no endpoint`, async () => {
    const shown = await tls();
    await using bad = await startHostile(says(EMPTY), shown.tls);
    await using app = await bootSend({ trust: shown.trust });
    const result = await app.post(bad.url);
    assert.is(result.outcome, 'TLS', result.error);
    assert.match(result.error, error);
  });
}

hostile('hang-drip-infinite-gzip: plain http on the port of https is no endpoint', async () => {
  await using bad = await startHostile(says('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await using app = await bootSend();
  assert.is((await app.post(bad.url)).outcome, 'TLS');
});

hostile('hang-drip-infinite-gzip: no response to the TLS hello is no connection', async () => {
  await using bad = await startHostile(() => {});
  await using app = await bootSend({ budget: BUDGET });
  const result = await app.post(bad.url);
  assert.is(result.outcome, 'CONNECT', result.error);
  assert.is(bad.connections(), 1);
});

hostile.run();

type Shown = { tls: TlsOptions; trust: string };
type Leaf = Parameters<Awaited<ReturnType<typeof authority>>['issue']>[0];

function issued(leaf: Leaf, more: TlsOptions = {}): () => Promise<Shown> {
  return async () => {
    const ca = await authority();
    return { tls: { ...(await ca.issue(leaf)), ...more }, trust: ca.cert };
  };
}

function untrusted(): () => Promise<Shown> {
  return async () => {
    const [trusted, other] = await Promise.all([authority(), authority()]);
    return { tls: await other.issue(), trust: trusted.cert };
  };
}

function own(make: typeof selfSigned): () => Promise<Shown> {
  return async () => ({ tls: await make(), trust: (await authority()).cert });
}
