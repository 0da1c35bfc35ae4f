/** The frame protocol: frames are read as written, in chunks of any size; others are refused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  encode,
  FROM_HOST_MAX_BYTES,
  FrameError,
  FrameReader,
  type FromHost,
  LINE_MAX_BYTES,
  LOG_LINES_MAX,
  readFromHost,
  readToHost,
  type ToHost,
} from '../../../runner/host/messages.ts';

const test = suite('runner/host/messages');
const line = { level: 'log', message: 'ä', timestamp: 1 } as const;

const FROM_HOST: FromHost[] = [
  { type: 'ready', cdpPort: 9222 },
  { type: 'log', id: 'i', lines: [line, { ...line, level: 'debug' }] },
  { type: 'result', id: 'i', json: '{"a":"\\n\\"ü"}' },
  { type: 'result', id: 'i', json: undefined },
  { type: 'manifests', id: 'i', json: '[]' },
  { type: 'error', id: 'i', name: '', message: 'm', stack: 's\n at x' },
  { type: 'done', id: 'i', retired: 'memory' },
];
const TO_HOST: ToHost[] = [
  {
    type: 'invoke',
    id: 'i',
    bundle: 'b',
    functionName: 'f',
    paramsJson: '{}',
    session: { id: 's', connectUrl: 'ws://x/' },
    region: 'r',
    secretsJson: '{"A":"b\\nc"}',
  },
  { type: 'introspect', id: 'i', bundle: 'b' },
  { type: 'abort', id: 'i' },
];

test('every frame is read as it was written, in chunks of any size', () => {
  const bytes = Buffer.concat([...FROM_HOST, ...TO_HOST].map(encode));
  for (const size of [1, 3, 7, 64, bytes.length]) {
    const reader = new FrameReader(FROM_HOST_MAX_BYTES);
    const bodies: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      bodies.push(...reader.push(bytes.subarray(at, at + size)));
    }
    const read = bodies.map((body, index) =>
      index < FROM_HOST.length ? readFromHost(body) : readToHost(body),
    );
    assert.equal(read, [...FROM_HOST, ...TO_HOST]);
  }
});

test('unknown members of a frame are dropped', () => {
  const body = Buffer.from('{"type":"done","id":"i","retired":"","__proto__":{"a":1},"b":2}');
  assert.equal(Object.keys(readFromHost(body)), ['type', 'id', 'retired']);
});

test('a frame that is too long is refused by its header', () => {
  for (const length of [0, FROM_HOST_MAX_BYTES + 1, 0xffff_ffff]) {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(length);
    assert.throws(() => new FrameReader(FROM_HOST_MAX_BYTES).push(header), isFrameError);
  }
});

const long = (n: number): string => 'x'.repeat(n);
const HOSTILE: [string, string][] = [
  ['no JSON', '{'],
  ['no object', '[]'],
  ['null', 'null'],
  ['no type', '{}'],
  ['an unknown type', '{"type":"invoke","id":"i"}'],
  ['an id that is no text', '{"type":"done","id":7,"retired":""}'],
  ['an unknown retirement', '{"type":"done","id":"i","retired":"bored"}'],
  ['a port that is none', '{"type":"ready","cdpPort":70000}'],
  ['manifests that are too long', `{"type":"manifests","id":"i"}\n"${long(3 << 20)}"`],
  ['a head that is too long', `{"type":"done","id":"i","retired":"","a":"${long(5 << 20)}"}`],
  [
    'many members',
    `{"type":"done","id":"i",${[...'abcdefgh'].map((name) => `"${name}":1`)},"retired":""}`,
  ],
  ['a line of more than its members', log(JSON.stringify({ ...line, more: [1] }))],
  ['manifests without any', '{"type":"manifests","id":"i"}'],
  ['an error without a stack', '{"type":"error","id":"i","name":"","message":""}'],
  ['a long error', `{"type":"error","id":"i","name":"","message":"${long(20_000)}","stack":""}`],
  ['lines that are no list', '{"type":"log","id":"i","lines":{}}'],
  ['a line of an unknown level', log('{"level":"fatal","message":"","timestamp":1}')],
  ['a line without a time', log('{"level":"log","message":""}')],
  ['a time with a fraction', log('{"level":"log","message":"","timestamp":1.5}')],
  ['a time of no calendar', log('{"level":"log","message":"","timestamp":1e300}')],
  ['a log without a line', log('')],
  ['a line too long', log(JSON.stringify({ ...line, message: long(LINE_MAX_BYTES + 1) }))],
  [
    'too many lines',
    log(
      Array(LOG_LINES_MAX + 1)
        .fill(JSON.stringify(line))
        .join(),
    ),
  ],
];

for (const [title, body] of HOSTILE) {
  test(`${title} is refused`, () => {
    assert.throws(() => readFromHost(Buffer.from(body)), isFrameError);
  });
}

function log(lines: string): string {
  return `{"type":"log","id":"i","lines":[${lines}]}`;
}

function isFrameError(error: unknown): boolean {
  return error instanceof FrameError;
}

test.run();
