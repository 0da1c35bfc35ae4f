import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseJson, readJson } from '../../../gateway/http/body.ts';
import { InvokeFunctionRequest } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('gateway/http/body');
const HEAD = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';

/** How reading ends for a client that sends `bytes` and then nothing, or leaves. */
async function endOf(bytes: string, then: 'waits' | 'leaves'): Promise<Fault> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  const arrived = once(server, 'request');
  socket.write(bytes);
  const [request] = (await arrived) as [IncomingMessage];
  const read = readJson(request, { timeoutMs: then === 'waits' ? 50 : 5_000 });
  if (then === 'leaves') socket.destroy();
  const fault = await read.then(
    () => undefined,
    (error: unknown) => error,
  );
  socket.destroy();
  server.close();
  server.closeAllConnections();
  assert.instance(fault, Fault);
  return fault as Fault;
}

test('a body that does not arrive is a REQUEST_TIMEOUT', async () => {
  const fault = await endOf(`${HEAD}content-length: 10\r\n\r\n{`, 'waits');
  assert.is(fault.reason, 'REQUEST_TIMEOUT');
  const nothing = await endOf(`${HEAD}transfer-encoding: chunked\r\n\r\n`, 'waits');
  assert.is(nothing.reason, 'REQUEST_TIMEOUT');
});

test('a client that disconnects during its body is CANCELLED', async () => {
  const fault = await endOf(`${HEAD}content-length: 10\r\n\r\n{`, 'leaves');
  assert.is(fault.reason, 'CANCELLED');
});

/** A body of one MiB less a byte that has not ended. */
function unended(chunk: Buffer) {
  const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  const body = Object.assign(new PassThrough(), { headers });
  body.write(chunk);
  return body;
}

test('one project may use half of the 128 MiB of arriving bodies, the next its share', async () => {
  const chunk = Buffer.from('1'.padEnd(1024 * 1024 - 1));
  const read = (body: PassThrough, projectId: string) =>
    readJson(body as unknown as IncomingMessage, { projectId }).catch((error) => error);
  const bodies = Array.from({ length: 96 }, () => unended(chunk));
  const reads = bodies.map((body, at) => read(body, at < 64 ? 'one' : 'two'));
  for (const full of ['one', 'two']) {
    // 'one' holds 64 MiB, 'two' 32 MiB: each as much as is free after it.
    assert.is((await read(unended(chunk), full)).reason, 'CONCURRENCY_LIMIT');
  }
  const third = unended(chunk);
  third.end();
  assert.is(await read(third, 'three'), 1);
  for (const body of bodies) body.end();
  assert.equal(new Set(await Promise.all(reads)), new Set([1]));
  const later = unended(chunk);
  later.end();
  assert.is(await read(later, 'one'), 1);
});

test('32 levels are accepted, also through protobuf, and 33 are refused', () => {
  const nested = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels));
  assert.ok(Array.isArray(parseJson(nested(32))));
  const objects = `{"params":${'{"a":'.repeat(30)}{}${'}'.repeat(30)}}`;
  const { params } = parseJson(Buffer.from(objects)) as { params: Record<string, unknown> };
  const sent = InvokeFunctionRequest.encode({
    functionId: '',
    params,
    sessionCreateParams: undefined,
  });
  assert.equal(InvokeFunctionRequest.decode(sent.finish()).params, params);
  assert.throws(
    () => parseJson(nested(33)),
    (error: unknown) => error instanceof Fault && error.reason === 'MALFORMED_JSON',
  );
});

test('an ordinary value is read as it is', () => {
  const value = { a: [1, -0.5, true, null], constructor: 'é', '': '\u{1f600}' };
  assert.equal(parseJson(Buffer.from(`\ufeff${JSON.stringify(value)}`)), value);
});

test.run();
