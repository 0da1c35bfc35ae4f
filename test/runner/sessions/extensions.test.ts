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
  const work = { sessionId: 's', projectId: 'p', sessionParamsJson, extension: wanted };
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
        assert.is(started.extension, undefined, use);
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
  assert.is(started.extension?.id, 'e');
  const text = readFileSync(join(started.extension?.dir ?? '', 'manifest.json'), 'utf8');
  assert.is(text, manifest());
});

test.run();
