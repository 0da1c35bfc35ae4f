/**
 * The cost of a message over gRPC: the largest messages of many members, sent as bytes to a real
 * core. Decoding the first of them would take 2.6 s of the thread that serves all calls.
 */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { boot, KEY } from '../boot.ts';

const test = suite('core/api/grpc-cost');

const BYTES = 13 << 20;
/** Of this whole process, client included. */
const CPU_MAX_MS = 1_000;
const PATH = '/tabern.v1.InvocationService/InvokeFunction';
const [STRING, PARAMS, BOOL, LIST] = [1, 2, 4, 6] as const;

/** A field of bytes. */
const field = (number: number, bytes: Uint8Array) =>
  new BinaryWriter().tag(number, 2).bytes(bytes).finish();
const value = new BinaryWriter().tag(BOOL, 0).bool(true).finish();
const member = (name: string, of = value) =>
  Buffer.concat([new BinaryWriter().tag(STRING, 2).string(name).finish(), field(2, of)]);

/** The same field as often as there is room. */
const same = (number: number, part: Uint8Array): Buffer => {
  const one = field(number, part);
  return Buffer.alloc(Math.floor(BYTES / one.length) * one.length, one);
};

const ZEROS = '0000000';

/** As many members, each of its own name. */
function numbered(): Buffer {
  const one = field(1, member(ZEROS));
  const all = same(1, member(ZEROS));
  const first = Buffer.from(one).indexOf(ZEROS);
  for (let at = 0; at * one.length < all.length; at += 1) {
    all.write(String(at).padStart(ZEROS.length, '0'), first + at * one.length, 'latin1');
  }
  return all;
}

const WORST: [string, () => Uint8Array][] = [
  ['members', () => field(PARAMS, numbered())],
  ['one member again and again', () => field(PARAMS, same(1, member('a')))],
  ['a list', () => field(PARAMS, field(1, member('a', field(LIST, same(1, value)))))],
  ['unknown fields', () => same(1_000, new Uint8Array(0))],
];

for (const [what, worst] of WORST) {
  test(`${what}: a message of 13 MiB is refused in little CPU time`, async () => {
    await using app = await boot();
    const size = { 'grpc.max_send_message_length': BYTES * 2 };
    const client = new Client(app.core.address, credentials.createInsecure(), size);
    const metadata = new Metadata();
    metadata.set('x-svc-api-key', KEY);
    const message = Buffer.from(worst());
    const asIs = (bytes: Buffer): Buffer => bytes;
    const { promise, resolve } = Promise.withResolvers<ServiceError | null>();
    const before = process.cpuUsage();
    client.makeUnaryRequest(PATH, asIs, asIs, message, metadata, resolve);
    const error = await promise;
    const { user, system } = process.cpuUsage(before);
    client.close();
    assert.match(String(error?.details), 'larger than 1048576 bytes');
    const ms = (user + system) / 1_000;
    assert.ok(ms < CPU_MAX_MS, `${ms} ms`);
  });
}

test.run();
