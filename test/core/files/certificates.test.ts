/** Certificates: what is accepted, who may name one, and how long a session trusts it. */
import { X509Certificate } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { authority, selfSigned } from '../../support/servers/certificates.ts';
import { openSessions } from '../sessions/runs.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/files/certificates');

async function openCertificates() {
  const app = await openSessions();
  app.clock.set(Date.now());
  const { certificates } = app.clients;
  const upload = (content: string | Uint8Array) =>
    certificates.createCertificate({ content: Buffer.from(content) }, app.asProject);
  return {
    ...app,
    certificates,
    upload,
    made: async (content: string | Uint8Array) =>
      must((await upload(content)).certificate, 'certificate').id,
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}

const derOf = (pem: string) => new X509Certificate(pem).raw;
/** As BER allows it, and OpenSSL reads it: the length of the signed part is not written. */
function withoutLength(der: Buffer): Buffer {
  const end = 8 + der.readUInt16BE(6);
  const signed = [Buffer.from([0x30, 0x80]), der.subarray(8, end), Buffer.alloc(2)];
  const header = Buffer.from(der.subarray(0, 4));
  return Buffer.concat([header, ...signed, der.subarray(end)]);
}

const trusting = (...caCertificates: string[]) => ({ proxySettings: { caCertificates } });

test('a certificate in PEM or DER, or several in one file, are what a session trusts', async () => {
  await using app = await openCertificates();
  const [a, b, c] = [await authority(), await authority(), await authority()];
  const first = await app.made(derOf(a.cert));
  const both = await app.made(`# of two\n${b.cert}\n\n${c.cert}`.replaceAll('\n', '\r\n'));
  const { work } = await app.run(trusting(first.toUpperCase(), both));
  assert.equal(
    work.caCertificates.map((der) => Buffer.from(der).toString('hex')),
    [a, b, c].map(({ cert }) => derOf(cert).toString('hex')),
  );
  const { work: other } = await app.run();
  assert.equal(other.caCertificates, []);
  const read = await app.certificates.getCertificate({ id: first }, app.asProject);
  const listed = await app.certificates.listCertificates({}, app.asProject);
  assert.equal(
    listed.certificates.map(({ id }) => id),
    [both, first],
  );
  assert.equal(listed.certificates[1], read.certificate);
  assert.equal(Object.keys(must(read.certificate, 'one')).sort(), [
    ...['createdAt', 'id', 'projectId', 'updatedAt'],
  ]);
});

test('a function trusts the certificates of its sessionConfig', async () => {
  await using app = await openCertificates();
  const { cert } = await authority();
  const config = JSON.stringify(trusting(await app.made(cert)));
  await app.invoke(await app.publish({ name: 'f', config }));
  const { item } = must((await app.lease('INVOCATION'))[0], 'work');
  assert.is(item?.$case === 'invocation' && item.value.caCertificates.length, 1);
});

test('a file that is no certificate of an authority is refused, with the reason', async () => {
  await using app = await openCertificates();
  const { cert, issue } = await authority();
  const leaf = await issue();
  const rows: [string | Uint8Array, RegExp][] = [
    ['hello', /^`file` is no certificate in PEM or DER: it cannot be parsed\.$/],
    [derOf(cert).subarray(0, 100), /cannot be parsed/],
    [withoutLength(derOf(cert)), /cannot be parsed/],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', /cannot be parsed/],
    [leaf.cert, /^`file` is not accepted\. The certificate is not of an authority \(CA\)/],
    [`${cert}\n${leaf.cert}`, /Certificate 2 is not of an authority/],
    [(await selfSigned()).cert, /is not of an authority/],
    [`${cert}\n${leaf.key}`, /must not contain a private key/],
    [`${cert}\n`.repeat(11), /must have at most 10 certificates/],
    ['', /must be 1 to 65536 bytes/],
    [Buffer.alloc((64 << 10) + 1), /must be 1 to 65536 bytes/],
  ];
  for (const [content, expected] of rows) {
    const fault = await faultOf(app.upload(content));
    assert.is(fault.facts['field'], 'file', String(expected));
    assert.match(fault.message, expected);
  }
  app.clock.set(Date.now() + 3_000 * 86_400_000);
  assert.match((await faultOf(app.upload(cert))).message, /The certificate expired on 20\d\d-/);
  const listed = await app.certificates.listCertificates({}, app.asProject);
  assert.equal(listed.certificates, []);
});

test('a session names certificates of its project only, within limits', async () => {
  await using app = await openCertificates();
  const { clients, asOperator, asProject, create } = app;
  await clients.operators.createProject({ name: 'other', limits: undefined }, asOperator);
  const made = await clients.operators.createApiKey({ project: 'other', name: '' }, asOperator);
  const theirs = { metadata: { 'x-svc-api-key': made.key } };
  const { cert } = await authority();
  const own = await app.made(cert);
  for (const call of [app.certificates.getCertificate, app.certificates.deleteCertificate]) {
    assert.is((await faultOf(call({ id: own }, theirs))).reason, 'RESOURCE_NOT_FOUND');
    assert.is((await faultOf(call({ id: 'x' }, asProject))).reason, 'RESOURCE_NOT_FOUND');
  }
  const content = Buffer.from(cert);
  const foreign = await app.certificates.createCertificate({ content }, theirs);
  for (const id of [newId(), 'x', must(foreign.certificate, 'theirs').id]) {
    const fault = await faultOf(create(trusting(own, id)));
    assert.equal(fault.facts, { field: 'proxySettings.caCertificates[1]' });
    assert.match(fault.message, 'must be a certificate of this project');
  }
  const many = await faultOf(create(trusting(...Array.from({ length: 11 }, () => own))));
  assert.is(many.facts['field'], 'proxySettings.caCertificates');
});

test('a deleted certificate is trusted by open sessions until they end', async () => {
  await using app = await openCertificates();
  const { cert } = await authority();
  const id = await app.made(cert);
  await app.invoke(await app.publish({ name: 'f', config: JSON.stringify(trusting(id)) }));
  await app.certificates.deleteCertificate({ id }, app.asProject);
  const again = app.certificates.deleteCertificate({ id }, app.asProject);
  assert.is((await faultOf(again)).reason, 'RESOURCE_NOT_FOUND');
  const late = await faultOf(app.create(trusting(id)));
  assert.is(late.facts['field'], 'proxySettings.caCertificates[0]');
  const { item } = must((await app.lease('INVOCATION'))[0], 'work');
  assert.is(item?.$case === 'invocation' && item.value.caCertificates.length, 1);
});

test('a project has 100 certificates at most', async () => {
  await using app = await openCertificates();
  const { cert } = await authority();
  const ids: string[] = [];
  for (let n = 0; n < 100; n++) ids.push(await app.made(cert));
  const fault = await faultOf(app.upload(cert));
  assert.equal([fault.reason, fault.facts], ['TOO_MANY_CERTIFICATES', { limit: 100 }]);
  await app.certificates.deleteCertificate({ id: must(ids[0], 'an id') }, app.asProject);
  assert.ok(await app.made(cert));
});

test('deleted certificates are removed, unless an open session is to trust them', async () => {
  await using bench = await openBench(must(ENGINES[0], 'an engine'));
  const { store } = bench;
  const projectId = await bench.project('p');
  const max = { count: 9, deleted: 9 };
  const [a, b] = [newId(), newId()];
  for (const id of [a, b]) await store.createCertificate({ id, projectId, pem: id, at: T0 }, max);
  const { id } = await store.createSession({
    id: newId(),
    projectId,
    region: 'us-west-2',
    contextId: null,
    extensionId: null,
    keepAlive: false,
    params: JSON.stringify(trusting(a.toUpperCase())),
    timeoutMs: 60_000,
    userMetadata: null,
    labels: { wanted: [], max: 1 },
    at: T0,
    waitUntil: T0 + 60_000,
  });
  for (const one of [a, b]) await store.deleteCertificate({ id: one, projectId, at: T0 });
  assert.is(await store.purgeCertificates(9), 1);
  const [work] = await bench.lease('session', 1, T0);
  assert.equal(work?.kind === 'session' && work.certificates, [a]);
  await store.releaseSession({ id, projectId, at: T0 });
  const { leaseId } = must(work, 'work');
  const end = { status: 'COMPLETED', reason: '', proxyBytes: 0, at: T0 } as const;
  await store.completeSession({ leaseId, ...end });
  assert.is(await store.purgeCertificates(9), 1);
  assert.is(await store.purgeCertificates(9), 0);
});

test('deleted certificates have a limit of their own until they are removed', async () => {
  await using app = await openCertificates();
  const { cert } = await authority();
  async function createAndDelete(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const id = await app.made(cert);
      await app.certificates.deleteCertificate({ id }, app.asProject);
    }
  }
  await createAndDelete(300);
  const { reason, message } = await faultOf(app.upload(cert));
  assert.is(reason, 'TOO_MANY_CERTIFICATES');
  assert.match(message, /^300 deleted certificates .*are not removed yet\. Retry in a minute\.$/);
});

test.run();
