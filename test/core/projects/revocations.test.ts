/** A revoked key: its URLs and tokens locate no session any more. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { HOLDER } from '../boot.ts';
import { openSessions } from '../sessions/runs.ts';

const test = suite('core/projects/revocations');
const ADDRESS = 'unix:/run/tabern/sessions.sock';

async function open() {
  const app = await openSessions();
  const { clients, asOperator, asGateway, asRunner } = app;
  await clients.runners.registerRunner({ ...HOLDER, address: ADDRESS }, asRunner);
  const { key, apiKey } = await clients.operators.createApiKey(
    { project: 'default', name: '' },
    asOperator,
  );
  const keyId = must(apiKey, 'key').id;
  return {
    ...app,
    keyId,
    asOther: { metadata: { 'x-svc-api-key': key } },
    revoke: () => clients.operators.revokeApiKey({ id: keyId }, asOperator),
    locate: ($case: 'signingKey' | 'viewToken', value = '') =>
      clients.sessions.locateSession({ credential: { $case, value } }, asGateway),
  };
}

test('a connectUrl and a live view end with the requesting API key', async () => {
  await using app = await open();
  const { session } = await app.run();
  const { id } = session;
  const { sessions } = app.clients;
  const theirs = (await sessions.getSession({ id }, app.asOther)).session?.signingKey;
  const { debuggerUrl, wsUrl } = await sessions.getLiveView({ id }, app.asOther);
  const token = debuggerUrl.split('token=')[1];
  assert.is(wsUrl.split('signingKey=')[1], theirs);
  assert.is((await app.locate('signingKey', theirs)).apiKeyId, app.keyId);
  assert.is((await app.locate('viewToken', token)).apiKeyId, app.keyId);

  await app.revoke();
  assert.is((await faultOf(app.locate('signingKey', theirs))).reason, 'SIGNING_KEY_INVALID');
  assert.is((await faultOf(app.locate('viewToken', token))).reason, 'SIGNING_KEY_INVALID');
  const own = await app.locate('signingKey', session.signingKey);
  assert.is(own.address, ADDRESS, 'the session goes on, for who has another key');
  assert.is.not(own.apiKeyId, app.keyId);
  assert.not.ok(own.signingKey.includes(theirs ?? ''));
});

test('a polling runner receives each revocation until its call names it', async () => {
  await using app = await open();
  const { runners } = app.clients;
  const wait = (knownKeyIds: string[], waitMs: number) =>
    runners.awaitRevocations({ knownKeyIds, waitMs }, app.asRunner);
  assert.equal(await wait([], 0), { keyIds: [] });
  const waiting = wait([], 25_000);
  await app.revoke();
  assert.equal(await waiting, { keyIds: [app.keyId] });
  assert.equal(await wait([], 25_000), { keyIds: [app.keyId] });
  assert.equal(await wait([app.keyId], 0), { keyIds: [app.keyId] });
  app.clock.advance(86_400_001);
  assert.equal(await wait([], 0), { keyIds: [] });
  const fault = await faultOf(
    runners.awaitRevocations({ knownKeyIds: [], waitMs: 0 }, app.asOther),
  );
  assert.is(fault.reason, 'API_KEY_INVALID');
});

test.run();
