/** HTTP/1.1 messages in the egress: valid and invalid heads, and the end of bodies. */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  answerHead,
  type Body,
  ChunkedBody,
  headEnd,
  NO_BODY,
  requestHead,
  sizedBody,
} from '../../../../runner/jail/egress/http1.ts';

const http1 = suite('runner/jail/egress/http1');

const asked = (...lines: string[]): string =>
  ['POST http://a.test/b?c HTTP/1.1', 'Host: a.test', ...lines, '', ''].join('\r\n');
const said = (...lines: string[]): string => [...lines, '', ''].join('\r\n');

/** Gives it bytes in parts of that size, and how many of all are of the body. */
function fed(body: Body, text: string, part: number): number | undefined {
  const bytes = Buffer.from(text, 'latin1');
  let taken = 0;
  for (let at = 0; at < bytes.length && !body.isOver; at += part) {
    const count = body.take(bytes.subarray(at, at + part));
    if (count === undefined) return undefined;
    taken += count;
  }
  return taken;
}

http1('a head ends at its empty line, in chunks of any size', () => {
  const text = 'GET / HTTP/1.1\r\na: b\r\n\r\nbody\r\n\r\n';
  for (let cut = 0; cut < text.length; cut += 1) {
    const endIn = headEnd();
    const first = endIn(Buffer.from(text.slice(0, cut)));
    const end = first ?? cut + (endIn(Buffer.from(text.slice(cut))) ?? Number.NaN);
    assert.is(end, text.indexOf('body'), String(cut));
  }
  assert.is(headEnd()(Buffer.from('a\nb\n\nc')), 5);
});

http1('a request keeps its headers except Host and hop-by-hop ones', () => {
  const head = requestHead(asked('X-Mine:  a\xe0 ', 'Proxy-Authorization: x', 'Upgrade: h2c'));
  assert.equal(head?.lines, ['X-Mine: a\xe0']);
  assert.is(head?.target, 'http://a.test/b?c');
  assert.ok(head?.body.isOver);
});

http1('the length of a request is forwarded although Connection lists it', () => {
  const lines = ['Connection: content-length, transfer-encoding', 'Content-Length: 5'];
  assert.equal(requestHead(asked(...lines))?.lines, ['Content-Length: 5']);
  const chunks = ['Connection: transfer-encoding', 'Transfer-Encoding: chunked'];
  const head = requestHead(asked(...chunks));
  assert.equal(head?.lines, ['Transfer-Encoding: chunked']);
});

http1('an ambiguous request is invalid', () => {
  for (const lines of [
    ['Content-Length: 1', 'Content-Length: 1'],
    ['Content-Length: 1', 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: gzip, chunked'],
    ['Transfer-Encoding: chunked, identity'],
    ['Content-Length: +1'],
    ['Content-Length: 1, 1'],
    ['Content-Length: 0x10'],
    ['Content-Length: 9999999999999999'],
    ['Content-Length : 1'],
    ['X: a', ' folded: b'],
    ['X: a\nContent-Length: 1'],
    ['X: a\rContent-Length: 1'],
    ['X: \0'],
    ['no colon'],
    [': no name'],
    ['Bad Name: x'],
  ]) {
    assert.is(requestHead(asked(...lines)), undefined, JSON.stringify(lines));
  }
  for (const first of [
    'GET  http://a/ HTTP/1.1',
    'GET http://a/ HTTP/1.1 ',
    'GET http://a/ b HTTP/1.1',
    'GET http://a/ HTTP/2.0',
    'GET http://a/',
    'G(T http://a/ HTTP/1.1',
    '',
  ]) {
    assert.is(requestHead(said(first, 'Host: a')), undefined, first);
  }
  assert.is(requestHead('GET http://a/ HTTP/1.1\nHost: a\n\n'), undefined);
});

http1('a response is rewritten with one length', () => {
  const text = said('HTTP/1.1 200 OK', 'Content-Length: 3', 'content-length: 3', 'B: 1', 'TE: x');
  const head = answerHead(text, 'GET');
  assert.is(head?.text, said('HTTP/1.1 200 OK', 'B: 1', 'Content-Length: 3'));
  assert.not(head?.isLast);
  const both = said('HTTP/1.1 200 OK', 'Content-Length: 3', 'Transfer-Encoding: Chunked');
  assert.is(answerHead(both, 'GET')?.text, said('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'));
  const twice = said('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Transfer-Encoding: Chunked');
  assert.is(answerHead(twice, 'GET')?.text, said('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'));
});

http1('a sloppy response is accepted', () => {
  const head = answerHead('HTTP/1.1 200\nA: 1\n more\nno header\nB : 2\r\nC:3\n\n', 'GET');
  assert.is(head?.text, said('HTTP/1.1 200 ', 'A: 1 more', 'C: 3', 'Connection: close'));
  assert.ok(head?.body.isOpenEnded);
});

http1('a response with an ambiguous length, or 101, is invalid', () => {
  for (const lines of [
    ['HTTP/1.1 200 OK', 'Content-Length: 1', 'Content-Length: 2'],
    ['HTTP/1.1 200 OK', 'Content-Length: -1'],
    ['HTTP/1.1 200 OK', 'Transfer-Encoding: gzip'],
    ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket'],
    ['HTTP/1.1 099 OK'],
    ['HTTP/1.1 1000 OK'],
    ['HTTP/2 200 OK'],
    ['ICY 200 OK'],
  ]) {
    assert.is(answerHead(said(...lines), 'GET'), undefined, JSON.stringify(lines));
  }
  assert.is(answerHead('HTTP/1.1 200 OK\r\nA: 1', 'GET'), undefined);
});

http1('a response with a non-standard code is valid', () => {
  const head = answerHead(said('HTTP/1.1 999 Request denied', 'Content-Length: 1'), 'GET');
  assert.is(head?.text, said('HTTP/1.1 999 Request denied', 'Content-Length: 1'));
});

http1('a response without a body has none, whatever its headers', () => {
  for (const [method, status] of [
    ['HEAD', '200 OK'],
    ['GET', '304 Not Modified'],
    ['GET', '204 No Content'],
    ['GET', '103 Early Hints'],
  ] as const) {
    const head = answerHead(said(`HTTP/1.1 ${status}`, 'Content-Length: 5'), method);
    assert.ok(head?.body.isOver, status);
    assert.match(head?.text ?? '', /Content-Length: 5/);
    assert.not(head?.isLast);
  }
});

http1('a sized body ends at its size', () => {
  for (const part of [1, 2, 100]) assert.is(fed(sizedBody(5), '1234567', part), 5);
  assert.ok(sizedBody(0).isOver);
});

http1('a chunked body ends after its trailers, in parts of any size', () => {
  const text = '5\r\nab\r\nc\r\n1A ;x="y"\r\n0123456789abcdef0123456789\r\n0\r\nT: 1\r\n\r\n';
  for (let part = 1; part <= text.length; part += 1) {
    assert.is(fed(new ChunkedBody(), `${text}GET /`, part), text.length, String(part));
  }
  assert.is(fed(new ChunkedBody(), '0\r\n\r\nrest', 100), 5);
});

http1('ambiguous chunks are invalid', () => {
  for (const text of [
    '5\nabcde\r\n0\r\n\r\n',
    '5\r\nabcdef\r\n',
    '5\r\nabcde\n0\r\n\r\n',
    '5;a\nb\r\nabcde\r\n',
    '0\r\nT: 1\n\r\n',
    '-1\r\n',
    '0x5\r\n',
    ';a\r\n',
    '\r\n',
    '10000000000000\r\n',
    '5\rabcde\r\n',
  ]) {
    for (const part of [1, 100]) assert.is(fed(new ChunkedBody(), text, part), undefined, text);
  }
});

/** Pieces that readers of HTTP disagree about, in any order. */
const PIECES = [
  ...['\r\n', '\n', '\r', ' ', '\t', ':', ',', ';', '\0', '\xff', 'a', '1', '\r\n '],
  ...['Content-Length', 'Transfer-Encoding', 'chunked', 'Connection', 'close', 'X', 'identity'],
  ...['\r\nContent-Length: 5', '\r\nTransfer-Encoding: chunked', '\r\nX: y', 'HTTP/1.1 200 OK'],
  ...['\r\nConnection: content-length', '\r\nConnection: transfer-encoding'],
];
const anyHead = fc.array(fc.constantFrom(...PIECES), { maxLength: 20 }).map((all) => all.join(''));

http1('a rewritten response parses as the same message, for any input', () => {
  const isSame = (rest: string): void => {
    const head = answerHead(`HTTP/1.1 200 OK${rest}\r\n\r\n`, 'GET');
    if (head === undefined) return;
    const again = answerHead(head.text, 'GET');
    assert.is(again?.text, head.text);
    assert.is(again?.isLast, head.isLast);
    assert.is(again?.body.isOpenEnded, head.body.isOpenEnded);
    assert.is(again?.body.isOver, head.body.isOver);
  };
  fc.assert(fc.property(anyHead, isSame), { numRuns: 5_000 });
});

http1('a valid request has one length at most and only well-formed lines', () => {
  const isClear = (rest: string): void => {
    const head = requestHead(`POST http://a/ HTTP/1.1${rest}\r\n\r\n`);
    if (head === undefined) return;
    const { lines } = head;
    for (const line of lines) assert.match(line, /^[!-9;-~]+: [\t -~\x80-\xff]*$/);
    const lengths = lines.filter((line) => /^(content-length|transfer-encoding):/i.test(line));
    assert.is(lengths.length, head.body === NO_BODY ? 0 : 1, lines.join());
  };
  fc.assert(fc.property(anyHead, isClear), { numRuns: 5_000 });
});

http1.run();
