/** A browser trusts the authorities of its own database, in both engines and sandboxes. */
import { X509Certificate } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { writeCertificates } from '../../../runner/browser/certificate-database.ts';
import { visit } from '../../../runner/browser/visit.ts';
import { JailError } from '../../../runner/jail/jail.ts';
import { authority } from '../../support/servers/certificates.ts';
import { tempDirectory } from '../../support/temp.ts';
import { openLab } from './lab.ts';

const test = suite('runner/browser/certificate-database');
const SHELL = '/usr/lib/chromium/chromium-headless-shell';
/** Landlock runs the shell alone. */
const ROWS = [
  { sandbox: 'bwrap', program: '/usr/lib/chromium/chromium' },
  { sandbox: 'bwrap', program: SHELL },
  { sandbox: 'landlock', program: SHELL },
] as const;

const derOf = (pem: string) => new X509Certificate(pem).raw;

/** A site with a certificate of this authority. */
async function startSecure({ issue }: Awaited<ReturnType<typeof authority>>) {
  const server = createServer(await issue(), (_, response) =>
    response.end('<title>trusted</title>'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

for (const { sandbox, program } of ROWS) {
  const name = `${sandbox}, ${basename(program)}`;
  test(`${name}: sites of two authorities are trusted, and of a third refused`, async () => {
    const [first, second, third] = [await authority(), await authority(), await authority()];
    const caCertificates = [first, second, first].map(({ cert }) => derOf(cert));
    const allow = ['127.0.0.1/32'];
    const lab = await openLab({ allow, sandbox, program, caCertificates }).catch(
      (error: unknown) => {
        if (sandbox !== 'landlock' || !(error instanceof JailError)) throw error;
      },
    );
    if (lab === undefined) return; // this machine has no Landlock
    await using _ = lab;
    const seen: string[] = [];
    for (const one of [first, second, third]) {
      await using site = await startSecure(one);
      const visited = await visit(lab.connectUrl, site.url).catch(String);
      seen.push(typeof visited === 'string' ? visited : visited.title);
      if (typeof visited !== 'string') await visited.close();
    }
    assert.equal(seen, ['trusted', 'trusted', 'Error: net::ERR_CERT_AUTHORITY_INVALID']);
  });
}

test('without certificates nothing is written', async () => {
  await using home = tempDirectory();
  await writeCertificates([], home.path);
  assert.equal(readdirSync(home.path), []);
});

test('bytes that are no certificate are an error', async () => {
  await using home = tempDirectory();
  const der = derOf((await authority()).cert);
  const all = ['', 'x', der.subarray(0, 4), der.subarray(0, 60), Buffer.alloc(60_000, 0x30)];
  for (const [at, bytes] of all.entries()) {
    const written = writeCertificates([Buffer.from(bytes)], join(home.path, String(at)));
    assert.instance(await written.catch((error: unknown) => error), Error, String(at));
  }
});

test.run();
