/** Files for a session and extensions over HTTP. proto/spec/sessions.md 9. */
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SESSION_FILE_MAX_BYTES } from '../../../../proto/common/limits.ts';
import { Fault, invalidField, notFound } from '../../../../proto/rpc/errors.ts';
import { until } from '../../../support/poll.ts';
import { type Answer, ask, KEY, openGateway } from '../../sessions/runner.ts';
import { extensionsOf, openRunner, SESSION, sessionOf } from './files.ts';

const test = suite('gateway/routes/files/uploads');
const UPLOADS = `/v1/sessions/${SESSION}/uploads`;
const HEAD = { 'content-type': 'multipart/form-data; boundary=b' };

/** A form of these parts: name, file name, bytes. */
function formOf(...parts: [string, string | undefined, string | Buffer][]): Buffer {
  const all = parts.flatMap(([name, filename, bytes]) => [
    `--b\r\ncontent-disposition: form-data; name="${name}"`,
    filename === undefined ? '' : `; filename="${filename}"`,
    '\r\n\r\n',
    bytes,
    '\r\n',
  ]);
  return Buffer.concat([...all, '--b--\r\n'].map((part) => Buffer.from(part)));
}

const send = (url: string, path: string, body: Buffer): Promise<Answer> =>
  ask(url, 'POST', path, { headers: HEAD, body });

/** A core whose session is on this runner. */
function sessionAt(address: string, more = {}) {
  return openGateway({
    sessions: {
      async getSession({ id }) {
        if (id !== SESSION) throw notFound('Session', id);
        return { session: sessionOf(more) };
      },
      async locateSession({ credential }, { metadata }) {
        if (metadata['authorization'] !== 'Bearer a-token') throw new Error('no gateway');
        const signingKey = String(credential?.value);
        const found = { sessionId: SESSION, status: 'RUNNING', address, signingKey } as const;
        const rights = { apiKeyId: '', isReadOnly: false, handoffId: '', runnerId: '' };
        return { ...found, ...rights, expiresAt: undefined };
      },
    },
  });
}

test('the runner has received the whole file, with its name, before the answer', async () => {
  await using runner = await openRunner();
  await using gateway = await sessionAt(runner.address);
  const bytes = Buffer.alloc(3_000_000, 'some');
  const form = formOf(['note', undefined, 'x'], ['file', 'ü b.pdf', bytes]);
  const { status, json } = await send(gateway.url, UPLOADS, form);
  assert.equal([status, json], [200, { message: 'File uploaded to /tmp/.uploads/ü b.pdf' }]);
  const [put] = runner.kept;
  assert.is(put?.url, '/uploads/%C3%BC%20b.pdf?signingKey=the-key');
  assert.ok(put?.bytes.equals(bytes));
});

test('an empty file is a file', async () => {
  await using runner = await openRunner();
  await using gateway = await sessionAt(runner.address);
  assert.is((await send(gateway.url, UPLOADS, formOf(['file', 'a', '']))).status, 200);
  assert.is(runner.kept[0]?.bytes.length, 0);
});

const WRONG: [string, Buffer, string][] = [
  ['no file', formOf(['other', 'a', 'x']), '`file` is required.'],
  ['a field', formOf(['file', undefined, 'x']), '`file` must be a file with a name.'],
  ['two files', formOf(['file', 'a', 'x'], ['file', 'b', 'y']), '`file` must be given once.'],
  ['no name', formOf(['file', '', 'x']), '`file` must be a file with a name.'],
];

test('a wrong form is a 400 and no file', async () => {
  await using runner = await openRunner();
  await using gateway = await sessionAt(runner.address);
  for (const [name, form, message] of WRONG) {
    const { status, json } = await send(gateway.url, UPLOADS, form);
    assert.equal([status, (json as { message: string }).message], [400, message], name);
  }
  assert.is((await send(gateway.url, UPLOADS, Buffer.from('nothing'))).status, 400);
  assert.equal(runner.kept, []);
});

test('a missing, ended or not started session receives no file', async () => {
  await using runner = await openRunner();
  const form = formOf(['file', 'a', 'x']);
  const cases: [object, string, number][] = [
    [{}, UPLOADS.replace('0001/', '0002/'), 404],
    [{ endedAt: new Date() }, UPLOADS, 410],
    [{ signingKey: undefined }, UPLOADS, 502],
  ];
  for (const [more, path, status] of cases) {
    await using gateway = await sessionAt(runner.address, more);
    assert.is((await send(gateway.url, path, form)).status, status);
  }
  assert.equal(runner.kept, []);
});

test('a refusal of the runner is returned, also before it has read the file', async () => {
  const form = formOf(['file', 'a', Buffer.alloc(5_000_000)]);
  for (const [said, status] of [
    [413, 413],
    [400, 400],
    [410, 410],
    [500, 502],
  ] as const) {
    await using runner = await openRunner(() => said);
    await using gateway = await sessionAt(runner.address);
    const { status: got, json } = await send(gateway.url, UPLOADS, form);
    assert.equal([got, (json as { message: string }).message], [status, `refused with ${said}`]);
  }
  await using gateway = await sessionAt('unix:/nonexistent/runner.sock');
  assert.is((await send(gateway.url, UPLOADS, formOf(['file', 'a', 'x']))).status, 502);
});

test('the runner does not receive a truncated file as complete', async () => {
  await using runner = await openRunner();
  await using gateway = await sessionAt(runner.address);
  const whole = formOf(['file', 'a', Buffer.alloc(100_000)]);
  const broken = await send(gateway.url, UPLOADS, whole.subarray(0, 90_000));
  assert.is(broken.status, 400);
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  const head = [`POST ${UPLOADS} HTTP/1.1`, `host: ${hostname}`, `x-svc-api-key: ${KEY}`];
  const length = [`content-type: ${HEAD['content-type']}`, `content-length: ${whole.length}`];
  socket.write([...head, ...length, '', ''].join('\r\n'));
  socket.write(whole.subarray(0, 90_000));
  await until(() => runner.seen() > 0);
  socket.destroy();
  await until(() => runner.cut.length > 0);
  assert.equal(runner.kept, []);
});

test('a body over the limit is a 413 before it is read', async () => {
  await using runner = await openRunner();
  await using gateway = await sessionAt(runner.address);
  const headers = { ...HEAD, 'content-length': String(SESSION_FILE_MAX_BYTES + 1_000_000) };
  const { status, json } = await ask(gateway.url, 'POST', UPLOADS, { headers });
  const message = 'The body must not exceed 500 MiB.';
  assert.is(status, 413);
  assert.match((json as { message: string }).message, message.slice(0, 24));
});

test('an extension is stored under its name', async () => {
  const { handlers, kept } = extensionsOf();
  await using gateway = await openGateway(handlers as never);
  const form = formOf(['file', 'my.zip', Buffer.alloc(1_000)]);
  const { status, json } = await send(gateway.url, '/v1/extensions', form);
  assert.is(status, 200);
  const { id, fileName, projectId } = json as Record<string, string>;
  assert.equal([id, fileName, projectId], ['e', 'my.zip', 'p']);
  assert.equal(kept, [{ kind: 'EXTENSION', size: 1_000, fileName: 'my.zip' }]);
  const other = await fetch(`${gateway.url}/v1/extensions`, {
    method: 'POST',
    headers: { ...HEAD, 'x-bb-api-key': `${KEY}-another` },
    body: form as never,
  });
  assert.is(other.status, 401);
});

test('an invalid extension is refused with core’s error; a wrong form stores nothing', async () => {
  const { handlers } = extensionsOf(invalidField('file', 'is no extension: it is not.'));
  await using gateway = await openGateway(handlers as never);
  const refused = await send(gateway.url, '/v1/extensions', formOf(['file', 'a.zip', 'x']));
  const said = '`file` is no extension: it is not.';
  assert.equal([refused.status, (refused.json as { message: string }).message], [400, said]);
  const keeping = extensionsOf();
  await using second = await openGateway(keeping.handlers as never);
  for (const [name, form] of [...WRONG, ['empty', formOf(['file', 'a', ''])] as const]) {
    assert.is((await send(second.url, '/v1/extensions', form)).status, 400, name);
  }
  assert.equal(keeping.kept, []);
});

test('Stagehand’s start creates a session, or uses a running one', async () => {
  const made: object[] = [];
  let endedAt: Date | undefined;
  await using gateway = await openGateway({
    sessions: {
      async createSession(request) {
        if (request.timeout === 1) throw invalidField('timeout', 'must be 60 to 21600.');
        made.push(request);
        return { session: sessionOf({ id: 'new' }) };
      },
      async getSession({ id }) {
        if (id !== SESSION) throw notFound('Session', id);
        return { session: sessionOf({ endedAt }) };
      },
    },
  });
  const start = async (body: unknown) => {
    const headers = { 'content-type': 'application/json' };
    const path = '/v1/sessions/start';
    const sent = { headers, body: JSON.stringify(body) };
    const { status, json } = await ask(gateway.url, 'POST', path, sent);
    return [status, (json as { message?: string }).message ?? json];
  };
  const data = (sessionId: string) => ({ success: true, data: { sessionId, available: false } });
  const params = { userMetadata: { stagehand: 'true' }, timeout: 600, unknown: 1 };
  const whole = { modelName: 'm', browserbaseSessionCreateParams: params, verbose: 1 };
  assert.equal(await start(whole), [200, data('new')]);
  const [{ userMetadata, timeout }] = made as [Record<string, unknown>];
  assert.equal([userMetadata, timeout], [{ stagehand: 'true' }, 600]);
  assert.equal(await start({ modelName: 'm' }), [200, data('new')]);
  assert.equal(await start({ browserbaseSessionID: SESSION }), [200, data(SESSION)]);
  assert.is(made.length, 2);
  assert.equal(await start({ browserbaseSessionID: 'x' }), [404, 'Session not found.']);
  assert.equal(await start({ browserbaseSessionID: 5 }), [
    400,
    '`browserbaseSessionID` must be a string.',
  ]);
  const wrong = { browserbaseSessionCreateParams: { timeout: 1 } };
  assert.equal(await start(wrong), [400, '`timeout` must be 60 to 21600.']);
  assert.equal(await start({ browserbaseSessionCreateParams: { timeout: 'x' } }), [
    400,
    '`timeout` must be a whole number.',
  ]);
  assert.is((await start([]))[0], 400);
  endedAt = new Date();
  assert.equal(await start({ browserbaseSessionID: SESSION }), [410, 'The session has ended.']);
  assert.is(made.length, 2);
});

test('a key has a limit of concurrent uploads', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using gateway = await openGateway({
    sessions: {
      async getSession() {
        await promise;
        throw new Fault('SESSION_ENDED', 'The session has ended.');
      },
    },
  });
  const form = formOf(['file', 'a', 'x']);
  const all = Array.from({ length: 9 }, () => send(gateway.url, UPLOADS, form));
  const { status: first } = await Promise.race(all); // the others wait in their places
  assert.is(first, 429);
  resolve();
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  assert.equal(statuses.sort(), [...Array(8).fill(410), 429]);
});

test.run();
