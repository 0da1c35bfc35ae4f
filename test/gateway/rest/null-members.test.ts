/** A member that is null counts as absent, in every body of the contract: as in protobuf's JSON. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { KEY } from '../../core/boot.ts';
import { openUploads } from '../routes/files/contexts.ts';

/** Whatever the schema of a session's settings names, at each level. */
const BROWSER = {
  context: null,
  viewport: { width: null, height: 600 },
  allowedDomains: null,
  network: { allow: null, deny: ['example.com'] },
  os: null,
  blockAds: null,
  fingerprint: null,
  engine: null,
  captchaImageSelector: null,
};
const CONFIG = JSON.stringify({ timeout: null, proxies: null, browserSettings: BROWSER });

const test = suite('gateway/rest/null-members');

test('null members change no answer of any operation', async () => {
  await using app = await openUploads({}, false);
  const send = async (method: string, path: string, body: object) => {
    const answer = await fetch(app.gateway.url + path, {
      method,
      headers: { 'x-svc-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    return `${answer.status} ${answer.status < 400 ? '' : await answer.text()}`;
  };
  const operations = operationsOf(readContract()).filter(({ hasBody }) => hasBody);
  assert.ok(operations.length > 5);
  for (const { method, verb, template } of operations) {
    if (method.name === 'CreateSession') continue; // it waits for a browser; below
    const path = template.replace(/\{\w+\}/g, newId());
    const nulls = Object.fromEntries(method.input.fields.map((field) => [field.jsonName, null]));
    const shown = Object.fromEntries(
      Object.entries(nulls).filter(([name]) => !/Json$/.test(name) && name !== 'idempotencyKey'),
    );
    const plain = await send(verb.toUpperCase(), path, {});
    assert.is(await send(verb.toUpperCase(), path, shown), plain, `${method.name} ${template}`);
  }
  const functionId = await app.publish({ name: 'f', config: CONFIG });
  const settings = {
    timeout: null,
    extensionId: null,
    userMetadata: null,
    browserSettings: BROWSER,
    proxies: [{ type: 'none', domainPattern: null, server: null, geolocation: null }],
  };
  const body = { params: null, versionId: null, sessionCreateParams: settings };
  assert.is(await send('POST', `/v1/functions/${functionId}/invoke`, body), '202 ');
  for (const name of [null, undefined, 'given']) {
    assert.is(await send('POST', '/v1/contexts', { name, projectId: null }), '201 ', String(name));
  }
});

test.run();
