/** A bucket over TLS whose authority is private, as in many companies. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { authority, type Certificate } from '../../support/servers/certificates.ts';
import { startS3 } from '../../support/servers/s3.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/operations/bucket-tls');

type Session = { id: string; connectUrl: string };
type Downloads = { downloads: { filename: string }[] };

/** TLS before a server that speaks plain HTTP. */
async function startTls(certificate: Certificate, endpoint: string) {
  const port = Number(new URL(endpoint).port);
  const server = createServer(certificate, (client) => {
    const plain = connect(port, '127.0.0.1');
    client.on('error', () => plain.destroy()).on('close', () => plain.destroy());
    plain.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.pipe(plain).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

async function readiness(stack: Stack): Promise<string> {
  const answer = await stack.fetch('/readyz');
  return `${answer.status} ${JSON.stringify(await answer.json())}`;
}

/** A file that a page saves, which the runner writes to the bucket itself. */
async function download(stack: Stack, site: string): Promise<string[]> {
  const session = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'a page');
  await page.goto(site);
  const begun = page.waitForEvent('download');
  await page.evaluate(`{
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['kept']));
    link.download = 'kept.txt';
    link.click();
  }`);
  await begun;
  const names = async () => {
    const path = `/v1/downloads?sessionId=${session.id}`;
    return (await stack.call<Downloads>(path)).downloads.map(({ filename }) => filename);
  };
  await until(async () => (await names()).length > 0);
  await browser.close();
  return await names();
}

journey('a private authority of the bucket is trusted when Node is told', async () => {
  await using server = await startS3();
  await using site = await startSite();
  await using dir = tempDirectory();
  const { cert, issue } = await authority();
  await using tls = await startTls(await issue(), server.endpoint);
  const place = { ...(await server.bucket()), endpoint: tls.url };
  const settings = server.settings(place);
  {
    await using stack = await boot({ env: settings });
    const said = await until(async () => {
      const text = await readiness(stack);
      return text.includes('TABERN_BLOBS_ENDPOINT') && text;
    });
    match(said, /^503 .*certificate that is not accepted \([A-Z_]+\): set NODE_EXTRA_CA_CERTS/);
  }
  const path = join(dir.path, 'authority.crt');
  writeFileSync(path, cert);
  await using stack = await boot({ env: { ...settings, NODE_EXTRA_CA_CERTS: path } });
  await until(async () => (await readiness(stack)).startsWith('200 '));
  equal(await download(stack, site.url), ['kept.txt']);
});

journey.run();
