import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { ask } from '../../sessions/runner.ts';
import { archive, BUILDS_PATH, openKeeping, part, send, unended } from './uploads.ts';

const test = suite('gateway/routes/files/builds');
const METADATA = JSON.stringify({ entrypoint: './index.ts', archiveBlobId: 'not-yours' });

test('metadata and archive in either order make a build', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const first = await send(gateway.url, [
    ['metadata', METADATA],
    ['archive', archive(200_000)],
  ]);
  assert.is(first.status, 202);
  assert.equal(first.json, {
    id: 'b',
    projectId: 'p',
    request: { entrypoint: './index.ts', functionNames: [] },
    status: 'PENDING',
    createdAt: '2026-05-03T12:53:37.151Z',
    updatedAt: '2026-05-03T12:53:37.151Z',
    startedAt: '2026-05-03T12:53:37.151Z',
    expiresAt: '2026-05-03T12:53:37.151Z',
    builtFunctions: [],
  });
  const second = await send(gateway.url, [
    ['archive', archive(300_000)],
    ['metadata', METADATA],
  ]);
  assert.is(second.status, 202);
  assert.equal(kept.blobs, [
    { kind: 'BUILD_ARCHIVE', size: 200_000 },
    { kind: 'BUILD_ARCHIVE', size: 300_000 },
  ]);
  assert.is(kept.builds[1]?.archiveBlobId, 'blob-2');
  assert.is(kept.builds[1]?.projectId, undefined);
});

test('metadata may be a file part', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const metadata = new Blob([METADATA], { type: 'application/json' });
  const answer = await send(gateway.url, [
    ['archive', archive(10)],
    ['metadata', metadata],
  ]);
  assert.is(answer.status, 202);
  assert.is(kept.builds.length, 1);
});

const WRONG: [string, [string, string | Blob][], string][] = [
  ['no archive', [['metadata', METADATA]], '`archive` is required.'],
  [
    'archive as text',
    [
      ['metadata', METADATA],
      ['archive', 'x'],
    ],
    '`archive` is required.',
  ],
  ['no metadata', [['archive', archive(10)]], '`metadata` is required.'],
  [
    'two archives',
    [
      ['metadata', METADATA],
      ['archive', archive(10)],
      ['archive', archive(10)],
    ],
    '`archive` must be given once.',
  ],
  [
    'two metadata',
    [
      ['metadata', METADATA],
      ['metadata', METADATA],
      ['archive', archive(10)],
    ],
    '`metadata` must be given once.',
  ],
  [
    'empty archive',
    [
      ['archive', archive(0)],
      ['metadata', METADATA],
    ],
    '`archive` must not be empty.',
  ],
  [
    'bad JSON',
    [
      ['metadata', '{'],
      ['archive', archive(10)],
    ],
    '`metadata` must be a JSON object.',
  ],
  [
    'bad JSON after the archive',
    [
      ['archive', archive(100_000)],
      ['metadata', '{'],
    ],
    '`metadata` must be a JSON object.',
  ],
  [
    'no entry point',
    [
      ['metadata', '{}'],
      ['archive', archive(10)],
    ],
    '`metadata.entrypoint` is required.',
  ],
  [
    'wrong type',
    [
      ['metadata', '{"entrypoint":5}'],
      ['archive', archive(10)],
    ],
    '`entrypoint` must be a string.',
  ],
];

test('a wrong form is a 400 that names the part, and leaves neither blob nor build', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  for (const [name, parts, message] of WRONG) {
    const answer = await send(gateway.url, parts);
    assert.equal(answer.json, { statusCode: 400, error: 'Bad Request', message }, name);
  }
  assert.is(kept.blobs.length, 0);
  assert.is(kept.builds.length, 0);
});

test('a body that is not a form is refused', async () => {
  const { gateway } = await openKeeping();
  await using _ = gateway;
  const cases: [string, string, number][] = [
    ['application/json', '{}', 415],
    ['multipart/form-data', '', 415],
    ['multipart/form-data; x=y', '', 400],
    ['multipart/form-data; boundary=b', 'nothing', 400],
    ['multipart/form-data; boundary=b', '', 400],
    ['multipart/form-data; boundary=b', part('archive'), 400],
    ['multipart/form-data; boundary=b', part('metadata'), 400],
    ['multipart/form-data; boundary=b', part('archive').slice(0, 30), 400],
  ];
  for (const [type, body, status] of cases) {
    const answer = await ask(gateway.url, 'POST', BUILDS_PATH, {
      headers: { 'content-type': type },
      body,
    });
    assert.is(answer.status, status, `${type} ${body}`);
  }
});

test('a wrong key is a 401', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const parts: [string, string | Blob][] = [
    ['metadata', METADATA],
    ['archive', archive(2_000_000)],
  ];
  assert.is((await send(gateway.url, parts, 'svc_another-key-of-nobody')).status, 401);
  assert.is(kept.blobs.length, 0);
});

test('a truncated upload leaves nothing', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  await new Promise<void>((resolve) => socket.write(unended(hostname), () => resolve()));
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    setImmediate(() => socket.destroy());
  });
  await until(() => kept.cut.length > 0);
  assert.equal(kept.cut, ['CANCELLED']);
  assert.is(kept.blobs.length, 0);
  assert.is(kept.builds.length, 0);
});

test.run();
