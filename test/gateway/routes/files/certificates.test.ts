/** Uploads of certificates over HTTP: one small file in a form, and nothing else. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CERTIFICATE_MAX_BYTES } from '../../../../proto/common/limits.ts';
import { KEY } from '../../../core/boot.ts';
import { authority } from '../../../support/servers/certificates.ts';
import { ask, json } from '../../sessions/runner.ts';
import { formOf } from '../../tenants/tenant.ts';
import { openUploads } from './contexts.ts';

const test = suite('gateway/routes/files/certificates');

test('a certificate is stored; anything else is refused with the reason', async () => {
  await using app = await openUploads();
  const send = (form: { headers: Record<string, string>; body: Buffer | string }) => {
    const headers = { ...form.headers, 'x-svc-api-key': KEY };
    return ask(app.gateway.url, 'POST', '/v1/certificates', { ...form, headers });
  };
  const pem = Buffer.from((await authority()).cert);
  const stored = await send(formOf('file', pem));
  assert.is(stored.status, 200, stored.text);
  assert.equal(Object.keys(stored.json as object).sort(), [
    ...['createdAt', 'id', 'projectId', 'updatedAt'],
  ]);
  const padded = (length: number) => Buffer.concat([pem, Buffer.alloc(length - pem.length, '\n')]);
  assert.is((await send(formOf('file', padded(CERTIFICATE_MAX_BYTES)))).status, 200);
  const rows: [form: Parameters<typeof send>[0], status: number, message: RegExp][] = [
    [formOf('file', padded(CERTIFICATE_MAX_BYTES + 1)), 413, /must not exceed 64 KiB/],
    [formOf('other', pem), 400, /`file` is required/],
    [formOf('file', Buffer.from('hello')), 400, /`file` is no certificate/],
    [formOf('file', Buffer.alloc(0)), 400, /`file` must not be empty/],
    [json({ file: pem.toString() }), 415, /multipart\/form-data/],
  ];
  for (const [form, status, message] of rows) {
    const refused = await send(form);
    assert.is(refused.status, status, refused.text);
    assert.match(refused.text, message);
  }
  const headers = { 'x-svc-api-key': KEY };
  const listed = await ask(app.gateway.url, 'GET', '/v1/certificates', { headers });
  assert.is((listed.json as object[]).length, 2);
});

test.run();
