/** The published SDK, unmodified, against a running service. */
import Browserbase, { APIError, ConflictError, NotFoundError } from '@browserbasehq/sdk';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { SPARES } from '../../support/service/serve.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const UNKNOWN = '01a1fbc0-0000-7000-8000-000000000000';
const sdk = suite('sdk');
/** Invocations of this file take browsers and hosts that were started in advance. */
const service = shareStack({ env: SPARES });

/** The client, and the count of its requests. */
function clientOf({ url, apiKey }: Stack) {
  const sent = { count: 0 };
  const counting: typeof fetch = (...request) => {
    sent.count += 1;
    return fetch(...request);
  };
  return { client: new Browserbase({ apiKey, baseURL: url, fetch: counting as never }), sent };
}

async function errorOf(promise: Promise<unknown>): Promise<APIError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(error, APIError);
  return error as APIError;
}

sdk('contexts: created, read, renewed and deleted', async () => {
  const stack = await service.get();
  const { client, sent } = clientOf(stack);
  const made = await client.contexts.create({ name: ' Larder ', projectId: stack.projectId });
  assert.match(made.publicKey, /^-----BEGIN PUBLIC KEY-----/);
  assert.equal([made.cipherAlgorithm, made.initializationVectorSize], ['AES-256-CBC', 16]);
  const read = await client.contexts.retrieve(made.id);
  assert.equal([read.id, read.name, read.projectId], [made.id, 'Larder', stack.projectId]);
  const renewed = await client.contexts.update(made.id);
  assert.equal([renewed.id, renewed.cipherAlgorithm], [made.id, 'AES-256-CBC']);

  const before = sent.count;
  const taken = await errorOf(client.contexts.create({ name: 'LARDER' }));
  assert.instance(taken, ConflictError);
  assert.is(sent.count, before + 1, 'a name that is taken is not asked for again');
  assert.is(await client.contexts.delete(made.id), null);
  assert.instance(await errorOf(client.contexts.retrieve(made.id)), NotFoundError);
  assert.is((await client.contexts.create({ name: 'larder' })).cipherAlgorithm, 'AES-256-CBC');
  assert.ok((await client.contexts.create()).id, 'a body is not needed');
  assert.is((await errorOf(client.contexts.retrieve(''))).status, 404, 'no id is no list');
});

sdk('projects: listed, read, and their usage', async () => {
  const stack = await service.get();
  const { client } = clientOf(stack);
  const [project] = await client.projects.list();
  assert.is(project?.id, stack.projectId);
  assert.equal(await client.projects.retrieve(stack.projectId), project);
  for (const count of [project?.concurrency, project?.defaultTimeout]) {
    assert.type(count, 'number');
  }
  // the client has no type for `storage`
  const { browserMinutes, proxyBytes } = await client.projects.usage(stack.projectId);
  assert.equal([browserMinutes, proxyBytes], [0, 0]);
  assert.is((await errorOf(client.projects.retrieve(UNKNOWN))).status, 404);
  const stranger = new Browserbase({ apiKey: 'svc_not-a-key-of-anybody', baseURL: stack.url });
  const refused = await errorOf(stranger.projects.list());
  assert.equal(refused.error, {
    statusCode: 401,
    error: 'Unauthorized',
    message: 'Invalid API key.',
  });
});

sdk('sessions: read with their logs and recordings', async () => {
  const stack = await service.get();
  const { client } = clientOf(stack);
  const { trivial } = await publish(stack);
  const { id } = await invoke(stack, must(trivial, 'trivial'));
  const { sessionId } = await ended(stack, id);
  const session = await client.sessions.retrieve(sessionId);
  assert.equal([session.id, session.status], [sessionId, 'COMPLETED']);
  assert.equal([session.projectId, session.region], [stack.projectId, 'us-west-2']);
  assert.is(session.keepAlive, false);
  for (const time of [session.createdAt, session.startedAt, session.endedAt, session.expiresAt]) {
    assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  }
  assert.ok(Array.isArray(await client.sessions.logs.list(sessionId)));
  const none = await errorOf(client.sessions.recording.downloads.list(sessionId));
  assert.equal([none.status, none.message], [404, '404 Recording not found.']);
  for (const read of [
    () => client.sessions.retrieve(UNKNOWN),
    () => client.sessions.logs.list(UNKNOWN),
    () => client.sessions.recording.downloads.list(UNKNOWN),
  ]) {
    const { status, error } = await errorOf(read());
    assert.is(status, 404);
    const body = { statusCode: 404, error: 'Not Found', message: 'Session not found.' };
    assert.equal(error, body);
  }
  assert.is((await errorOf(client.sessions.retrieve('no-uuid'))).status, 400);
});

sdk('webhooks: created, listed, changed, rotated and deleted', async () => {
  const stack = await service.get();
  const { client, sent } = clientOf(stack);
  const endpoint = 'https://127.0.0.1:8443/hook';
  const eventTypes = ['functions.invocations.failed', 'functions.invocations.completed'] as const;
  const made = await client.webhooks.create({ endpoint, eventTypes: [...eventTypes] });
  assert.match(made.secret, /^whsec_/);
  assert.equal([made.endpoint, made.projectId], [endpoint, stack.projectId]);
  const before = sent.count;
  const again = await errorOf(client.webhooks.create({ endpoint, eventTypes: [...eventTypes] }));
  assert.instance(again, ConflictError);
  assert.is(sent.count, before + 1, 'an endpoint that is taken is not asked for again');

  const { data, nextCursor } = await client.webhooks.list({ limit: 10 });
  assert.equal([data.map(({ id }) => id), nextCursor], [[made.id], null]);
  assert.not.ok('secret' in must(data[0], 'webhook'));
  const changed = await client.webhooks.update(made.id, { eventTypes: [eventTypes[0]] });
  assert.equal(changed.eventTypes, [eventTypes[0]]);
  assert.equal(await client.webhooks.retrieve(made.id), changed);
  const secrets = [made.secret];
  for (const revokeImmediately of [undefined, false, true]) {
    const body = revokeImmediately === undefined ? undefined : { revokeImmediately };
    secrets.push((await client.webhooks.rotateSecret(made.id, body)).secret);
  }
  assert.is(new Set(secrets).size, 4);
  assert.is(await client.webhooks.delete(made.id), null);
  assert.is((await errorOf(client.webhooks.retrieve(made.id))).status, 404);
  assert.equal((await client.webhooks.list()).data, []);
});

sdk('the service of these tests leaves nothing', () => service.end());

sdk.run();
