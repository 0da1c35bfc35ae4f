/**
 * Signed URLs: proto/spec/rest.md 6. The same over HTTP:
 * test/gateway/routes/files/context-upload.test.ts.
 */
import { createHmac } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import {
  type Grant,
  type LinkMethod,
  readLink,
  signLink,
} from '../../../core/files/url-signature.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('core/files/url-signature');
const KEY = Buffer.alloc(32, 7);
const NOW = Date.UTC(2026, 0, 2);
const GRANT: Grant = {
  method: 'PUT',
  path: `/v1/contexts/${newId()}/content`,
  projectId: newId(),
  expiresAt: NOW + 60_000,
};
const URL = signLink(KEY, GRANT);

function reasonOf(url: string, method: LinkMethod = 'PUT', now = NOW, key = KEY): string {
  try {
    readLink(key, { method, url, now });
    return 'good';
  } catch (error) {
    return error instanceof Fault ? error.reason : String(error);
  }
}

test('a signed URL is valid any number of times', () => {
  for (let times = 0; times < 2; times += 1) {
    assert.equal(readLink(KEY, { method: 'PUT', url: URL, now: NOW }), GRANT);
  }
});

test('a URL with any changed character is refused', () => {
  for (let at = 0; at < URL.length; at += 1) {
    for (const other of ['0', 'a', 'A', '_', '/', '?', '&', '=', '%', '\n', '']) {
      if (other === URL[at]) continue;
      const url = URL.slice(0, at) + other + URL.slice(at + 1);
      assert.is(reasonOf(url), 'URL_SIGNATURE_INVALID', url);
    }
  }
});

test('the signature covers method, key and time', () => {
  assert.is(reasonOf(URL, 'GET'), 'URL_SIGNATURE_INVALID');
  assert.is(reasonOf(URL, 'PUT', NOW, Buffer.alloc(32, 8)), 'URL_SIGNATURE_INVALID');
  assert.is(reasonOf(URL, 'PUT', GRANT.expiresAt - 1), 'good');
  assert.is(reasonOf(URL, 'PUT', GRANT.expiresAt), 'URL_EXPIRED');
  const forged = URL.replace(/expires=\d+/, `expires=${GRANT.expiresAt / 1_000 + 60}`);
  assert.is(reasonOf(forged, 'PUT', GRANT.expiresAt), 'URL_SIGNATURE_INVALID', 'no 410 for those');
});

test('the signature covers the API key that the URL names', () => {
  const keyId = 'k3v9x0ab';
  const url = signLink(KEY, { ...GRANT, keyId });
  assert.equal(readLink(KEY, { method: 'PUT', url, now: NOW }), { ...GRANT, keyId });
  assert.is(reasonOf(url.replace('&key=k3v9x0ab', '')), 'URL_SIGNATURE_INVALID');
  assert.is(reasonOf(url.replace('k3v9x0ab', 'k3v9x0ac')), 'URL_SIGNATURE_INVALID');
  const signature = URL.slice(URL.indexOf('&signature='));
  assert.is(reasonOf(url.replace(/&signature=.*/, signature)), 'URL_SIGNATURE_INVALID');
});

test('URLs of earlier versions, without a key, are valid until they expire', () => {
  const { path, projectId, expiresAt } = GRANT;
  const lines = ['tabern link 1', 'PUT', path, projectId, expiresAt / 1_000].join('\n');
  const signature = createHmac('sha256', KEY).update(lines).digest('base64url');
  const query = `expires=${expiresAt / 1_000}&project=${projectId}&signature=${signature}`;
  assert.is(reasonOf(`${path}?${query}`), 'good');
});

test('two grants never share a signature', () => {
  const others: Partial<Grant>[] = [
    { method: 'GET' },
    { path: `${GRANT.path}/x` },
    { projectId: newId() },
    { expiresAt: GRANT.expiresAt + 1_000 },
    { keyId: 'k3v9x0ab' },
    { keyId: 'k3v9x0ac' },
  ];
  const signatures = [{}, ...others].map((other) =>
    signLink(KEY, { ...GRANT, ...other }).slice(-43),
  );
  assert.is(new Set(signatures).size, signatures.length);
});

test.run();
