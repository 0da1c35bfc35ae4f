/** Extensions that were uploaded before a current rule. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { componentsOf } from '../../../runner/sessions/components.ts';
import { openExtensions } from '../../../runner/sessions/extensions.ts';
import { BROWSERS, NO_HANDOFFS } from '../../support/runner/browsers.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/sessions/extensions');
const { signal } = new AbortController();

/** A runner's extensions, and core's one blob. */
async function openWith(zip: Buffer) {
  const dir = tempDirectory();
  async function* readBlob() {
    yield { chunk: zip };
  }
  const extensions = await openExtensions({
    dir: dir.path,
    clients: { blobs: { readBlob } as never },
    call: {},
  });
  const sha256 = createHash('sha256').update(zip).digest('hex');
  const wanted = { extensionId: 'e', blobId: 'b', sha256 };
  return { extensions, wanted, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
}

/** What a session's Chrome is started with, and the warnings of its user. */
async function startOf({ extensions, wanted }: Awaited<ReturnType<typeof openWith>>) {
  const warnings: unknown[] = [];
  const log = { info: ({ message }: { message: string }) => warnings.push(message) };
  const sessionParamsJson = '{"browserSettings":{"extensionId":"e","logSession":false}}';
  const load = { extension: wanted, moreExtensions: [], caCertificates: [] };
  const work = { sessionId: 's', projectId: 'p', sessionParamsJson, ...load };
  const own = { runner: testRunner({ log: log as never }), handoffs: NO_HANDOFFS };
  const resources = { ...BROWSERS, ...own, extensions };
  const { chromeOptions } = componentsOf(work as never, testLease('lease'), resources);
  return { started: await chromeOptions(signal), warnings };
}

for (const name of ['proxy', 'nativeMessaging']) {
  for (const field of ['permissions', 'optional_permissions']) {
    test(`an extension with ${name} in ${field} is not loaded, with a warning`, async () => {
      const zip = await zipOf({ 'manifest.json': manifest({ [field]: ['storage', name] }) });
      await using store = await openWith(zip);
      for (const use of ['unpacked', 'kept']) {
        const { started, warnings } = await startOf(store);
        assert.is(started.extensions, undefined, use);
        assert.is(warnings.length, 1, use);
        const expected = `extensionId: the extension is not loaded: ${field} in manifest.json `;
        assert.match(String(warnings[0]), `${expected}must not have ${name}: `);
      }
    });
  }
}

test('another extension is loaded from its directory, without a warning', async () => {
  await using store = await openWith(await zipOf({ 'manifest.json': manifest() }));
  const { started, warnings } = await startOf(store);
  assert.equal(warnings, []);
  assert.is(started.extensions?.[0]?.id, 'e');
  const text = readFileSync(join(started.extensions?.[0]?.dir ?? '', 'manifest.json'), 'utf8');
  assert.is(text, manifest());
});

/** What a session with these params and certificates is started with. */
async function startedWith(params: object, caCertificates: Buffer[] = []) {
  const log = { info: () => undefined };
  const load = { extension: undefined, moreExtensions: [], caCertificates };
  const sessionParamsJson = JSON.stringify(params);
  const work = { sessionId: 's', projectId: 'p', sessionParamsJson, ...load };
  const own = { runner: testRunner({ log: log as never }), handoffs: NO_HANDOFFS };
  const resources = { ...BROWSERS, ...own };
  const { chromeOptions } = componentsOf(work, testLease('lease'), resources);
  return chromeOptions(signal);
}

test('certificates, PDFs and sizes are options of a browser of its own', async () => {
  const engine = 'headless-shell';
  const der = Buffer.from('a');
  const rows: [object, Buffer[], object][] = [
    [{ engine }, [der], { engine, caCertificates: [der] }],
    [{ enablePdfViewer: false }, [], { policies: { AlwaysOpenPdfExternally: true } }],
    [{ enablePdfViewer: false, engine }, [], { engine }],
    [{ enablePdfViewer: true }, [], { engine: 'chromium' }],
    [{ size: 'regular' }, [], {}],
    [{ size: 'large' }, [], { memoryFactor: 2 }],
    [{ size: 'xlarge' }, [], { memoryFactor: 4 }],
  ];
  for (const [browserSettings, certificates, expected] of rows) {
    const started = await startedWith({ browserSettings }, certificates);
    const given = Object.entries(started).filter(([, value]) => value !== undefined);
    assert.equal(Object.fromEntries(given), expected, JSON.stringify(browserSettings));
  }
});

test.run();
