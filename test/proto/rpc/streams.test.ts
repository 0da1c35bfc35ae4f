/** Streams: one suite on every transport. Unary calls: local.test.ts. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReadBlobResponse, WriteBlobRequest } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { faultOf, serving, soon, TRANSPORTS } from './transports.ts';

for (const [name, open] of Object.entries(TRANSPORTS)) {
  const test = suite(`proto/rpc streams: ${name}`);

  test('a server stream arrives in order and ends', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob({ blobId }) {
            for (const part of blobId) yield { chunk: Buffer.from(part) };
          },
        },
      }),
    );
    assert.equal(await drained(stack.blobs.readBlob({ blobId: 'abc' })), ['a', 'b', 'c']);
    assert.equal(await drained(stack.blobs.readBlob({ blobId: '' })), []);
  });

  test('a failing server stream yields its parts, then its Fault', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob({ blobId }) {
            yield { chunk: Buffer.from('a') };
            if (blobId === 'bug') throw new Error('a secret');
            throw new Fault('DATA_CORRUPT', 'The blob is damaged.', { blobId });
          },
        },
      }),
    );
    const seen: string[] = [];
    const read = async (blobId: string) => {
      for await (const { chunk } of stack.blobs.readBlob({ blobId })) seen.push(String(chunk));
    };
    const fault = await faultOf(read('x'));
    assert.is(fault.reason, 'DATA_CORRUPT');
    assert.equal(fault.facts, { blobId: 'x' });
    assert.equal(seen, ['a']);
    assert.is((await faultOf(read('bug'))).message, 'An unexpected error occurred.');
    assert.is(stack.errors.length, 1);
  });

  test('a reader that stops reading a server stream ends its handler', async () => {
    const ended = Promise.withResolvers<void>();
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob() {
            try {
              for (;;) {
                yield { chunk: Buffer.alloc(1024) };
                await new Promise((resolve) => setImmediate(resolve));
              }
            } finally {
              ended.resolve();
            }
          },
        },
      }),
    );
    for await (const { chunk } of stack.blobs.readBlob({ blobId: 'x' })) {
      assert.is(chunk.length, 1024);
      break;
    }
    await soon(ended.promise);
  });

  test('a server stream over its deadline ends with DEADLINE', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob() {
            for (;;) {
              yield { chunk: Buffer.from('a') };
              await new Promise((resolve) => setTimeout(resolve, 20));
            }
          },
        },
      }),
    );
    const fault = await faultOf(drained(stack.blobs.readBlob({ blobId: 'x' }, { timeoutMs: 150 })));
    assert.is(fault.reason, 'DEADLINE');
  });

  test('a slow reader slows the handler', async () => {
    let made = 0;
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob() {
            for (; made < 2_000; made += 1) yield { chunk: Buffer.alloc(64 * 1024) };
          },
        },
      }),
    );
    const parts = stack.blobs.readBlob({ blobId: 'x' })[Symbol.asyncIterator]();
    await parts.next();
    let before = -1;
    while (before !== made) {
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.ok(made < 200, `${made} chunks of 64 KiB were made for a reader of one`);
    await parts.return?.();
  });

  test('a client stream arrives in order and receives its response', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async writeBlob(parts) {
            const seen: string[] = [];
            for await (const { part } of parts) {
              seen.push(part?.$case === 'chunk' ? String(part.value) : String(part?.value.kind));
            }
            return { blobId: seen.join(), size: seen.length, sha256: '', receipt: undefined };
          },
        },
      }),
    );
    const answer = await stack.blobs.writeBlob(parts(['a', 'b']));
    assert.equal(answer, { blobId: 'BUNDLE,a,b', size: 3, sha256: '', receipt: undefined });
  });

  test('a client stream that fails reports its own error to the caller', async () => {
    const begun = Promise.withResolvers<void>();
    const cut = Promise.withResolvers<unknown>();
    await using stack = await open(
      serving({
        blobs: {
          async writeBlob(parts, { signal }) {
            begun.resolve();
            signal.addEventListener('abort', () => cut.resolve('aborted'));
            try {
              for await (const _ of parts);
            } catch (error) {
              cut.resolve(error);
              throw error;
            }
            return { blobId: 'whole', size: 0, sha256: '' };
          },
        },
      }),
    );
    const breaking = async function* () {
      yield* parts(['a']);
      await begun.promise;
      throw new Fault('BODY_TOO_LARGE', 'Too large.');
    };
    const fault = await faultOf(stack.blobs.writeBlob(breaking()));
    assert.is(fault.reason, 'BODY_TOO_LARGE');
    await soon(cut.promise);
  });

  test('a client stream that the handler refuses stops its writer', async () => {
    let made = 0;
    await using stack = await open(
      serving({
        blobs: {
          async writeBlob() {
            throw new Fault('API_KEY_INVALID', 'Invalid API key.');
          },
        },
      }),
    );
    const many = async function* () {
      for (; made < 5_000; made += 1) yield* parts(['x'.repeat(64 * 1024)]);
    };
    assert.is((await faultOf(stack.blobs.writeBlob(many()))).reason, 'API_KEY_INVALID');
    assert.ok(made < 1_000, `${made} parts were made for a call that was refused`);
  });

  test.run();
}

async function drained(parts: AsyncIterable<ReadBlobResponse>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { chunk } of parts) seen.push(Buffer.from(chunk).toString());
  return seen;
}

async function* parts(chunks: string[]): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: { kind: 'BUNDLE' } } };
  for (const chunk of chunks) yield { part: { $case: 'chunk', value: Buffer.from(chunk) } };
}
