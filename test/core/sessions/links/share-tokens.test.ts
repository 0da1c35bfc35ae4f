/** The token of a shared session names its rights until it expires; anything else is refused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { sealerOf } from '../../../../core/common/sealer.ts';
import { viewTokens } from '../../../../core/sessions/live-view.ts';
import { shareTokens } from '../../../../core/sessions/share-tokens.ts';
import { signingKeys } from '../../../../core/sessions/signing-keys.ts';
import { faultOf } from '../../../support/fault.ts';

const test = suite('core/sessions/share-tokens');
const UNTIL = 1_800_000_000_123;
const sealer = sealerOf(Buffer.alloc(32, 7));

type Scene = { now?: () => number; by?: typeof sealer; revoked?: string };

function open({ now = () => 0, by = sealer, revoked = '' }: Scene = {}) {
  const getApiKey = async (id: string) =>
    id === 'unknown0' ? undefined : { id, name: '', revokedAt: id === revoked ? 1 : null };
  const store = { getApiKey } as unknown as Parameters<typeof shareTokens>[0]['store'];
  return shareTokens({ sealer: by, store, now });
}

function share(more: { keyId?: string; hasLog?: boolean } = {}) {
  return { sessionId: newId(), projectId: newId(), until: UNTIL, hasLog: false, ...more };
}

test('a token contains its session, project, end, log and API key', async () => {
  const tokens = open();
  for (const rights of [share(), share({ hasLog: true }), share({ keyId: 'abcdef01' })]) {
    const read = await tokens.read(tokens.of(rights));
    assert.equal(read, { kind: 'share', keyId: undefined, ...rights });
  }
});

test('a token is refused from its end on', async () => {
  let now = UNTIL - 1;
  const tokens = open({ now: () => now });
  const token = tokens.of(share());
  await tokens.read(token);
  now += 1;
  assert.is((await faultOf(tokens.read(token))).reason, 'URL_EXPIRED');
});

test('a token ends with its API key, and no other key', async () => {
  const tokens = open({ revoked: 'abcdef01' });
  for (const keyId of ['abcdef01', 'unknown0']) {
    assert.is((await faultOf(tokens.read(tokens.of(share({ keyId }))))).reason, 'URL_EXPIRED');
  }
  await tokens.read(tokens.of(share({ keyId: 'abcdef02' })));
  await tokens.read(tokens.of(share()));
});

test('a token with one character changed, removed or added is refused', async () => {
  const tokens = open();
  const token = tokens.of(share({ keyId: 'abcdef01' }));
  assert.is(token.length, 108);
  const wrong = ['', 'x', token.slice(0, -1), `${token}A`, `${token} `, `${token}\n`];
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === 'A' ? 'B' : 'A';
    wrong.push(token.slice(0, at) + other + token.slice(at + 1));
  }
  for (const text of wrong) {
    assert.is((await faultOf(tokens.read(text))).reason, 'URL_SIGNATURE_INVALID', text);
  }
});

test('a token of another master key, and other credentials of the session, are none', async () => {
  const tokens = open();
  const strangers = open({ by: sealerOf(Buffer.alloc(32, 8)) });
  const sessionId = newId();
  const views = viewTokens(sealer, () => 0);
  const wrong = [
    strangers.of(share()),
    signingKeys(sealer).of(sessionId, 'abcdef01'),
    views.of({ sessionId, expiresAt: new Date(UNTIL), isReadOnly: true }),
  ];
  for (const text of wrong) {
    assert.is((await faultOf(tokens.read(text))).reason, 'URL_SIGNATURE_INVALID', text);
  }
  const token = tokens.of(share());
  assert.is(views.read(token), undefined);
  assert.is(signingKeys(sealer).read(token), undefined);
});

test.run();
