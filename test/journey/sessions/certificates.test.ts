/**
 * Certificates by the published SDK: a session trusts the sites of an uploaded authority, also
 * behind a proxy that intercepts; other sessions refuse them, and names and times still count.
 */
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import Browserbase, { APIError, toFile } from '@browserbasehq/sdk';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, instance, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { authority, type Certificate, selfSigned } from '../../support/servers/certificates.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/certificates');
const service = shareStack();

const clientOf = ({ url, apiKey }: Stack) => new Browserbase({ apiKey, baseURL: url });
const UNTRUSTED = 'net::ERR_CERT_AUTHORITY_INVALID';

async function listening(server: Server) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A site that sends its own certificate alone. */
const startSecure = (certificate: Certificate) =>
  listening(createTlsServer(certificate, (_, response) => response.end('<title>trusted</title>')));

/** A proxy that answers for every host itself. */
function startIntercepting(port: number) {
  const proxy = createServer();
  proxy.on('connect', (_, client) => {
    const site = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(site).pipe(client);
    });
    const end = () => {
      client.destroy();
      site.destroy();
    };
    for (const socket of [client, site]) socket.on('error', end).on('close', end);
  });
  return listening(proxy);
}

/** The titles of the pages, or the errors of the navigations, in a session with these settings. */
async function visited(stack: Stack, settings: object, urls: string[]): Promise<string[]> {
  const client = clientOf(stack);
  const { id, connectUrl } = await client.sessions.create(settings);
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'page');
  const seen: string[] = [];
  for (const url of urls) {
    const failure = await page.goto(url).then(
      () => undefined,
      (error: Error) => error.message,
    );
    seen.push(/net::\w+/.exec(failure ?? '')?.[0] ?? (await page.title()));
  }
  await browser.close();
  await client.sessions.update(id, { status: 'REQUEST_RELEASE' });
  return seen;
}

journey('a session trusts an uploaded authority, and no other session does', async () => {
  const stack = await service.get();
  const client = clientOf(stack);
  const ours = await authority();
  await using site = await startSecure(await ours.issue());
  await using misnamed = await startSecure(await ours.issue({ names: ['other.example.com'] }));
  await using expired = await startSecure(await ours.issue({ isExpired: true }));
  const file = await toFile(Buffer.from(ours.cert), 'authority.pem');
  const { id, ...more } = await client.certificates.create({ file });
  equal(Object.keys(more).sort(), ['createdAt', 'projectId', 'updatedAt']);
  equal((await client.certificates.retrieve(id)).id, id);
  ok((await client.certificates.list()).some((one) => one.id === id));
  const urls = [site, misnamed, expired].map(({ port }) => `https://127.0.0.1:${port}/`);
  const settings = { proxySettings: { caCertificates: [id] } };
  for (const engine of ['chromium', 'headless-shell']) {
    // newer than the types of this SDK
    const wanted = { ...settings, browserSettings: { engine } as object };
    equal(await visited(stack, wanted, urls), [
      'trusted',
      'net::ERR_CERT_COMMON_NAME_INVALID',
      'net::ERR_CERT_DATE_INVALID',
    ]);
  }
  equal(await visited(stack, {}, urls), [UNTRUSTED, UNTRUSTED, UNTRUSTED]);

  await using proxy = await startIntercepting(site.port);
  const proxies = [{ type: 'external' as const, server: `http://127.0.0.1:${proxy.port}` }];
  const intercepted = ['https://hook.example.com/'];
  equal(await visited(stack, { ...settings, proxies }, intercepted), ['trusted']);
  equal(await visited(stack, { proxies }, intercepted), [UNTRUSTED]);

  await client.certificates.delete(id);
  const gone = await client.certificates.retrieve(id).catch((error: unknown) => error);
  instance(gone, APIError);
  is((gone as APIError).status, 404);
});

journey(
  'an upload that is no authority, and a session with an unknown one, are a 400',
  async () => {
    const stack = await service.get();
    const client = clientOf(stack);
    const leaf = await toFile(Buffer.from((await selfSigned()).cert), 'leaf.pem');
    const unknown = { proxySettings: { caCertificates: ['01a1fbc0-0000-7000-8000-000000000000'] } };
    const rows: [() => Promise<unknown>, RegExp][] = [
      [() => client.certificates.create({ file: leaf }), /not of an authority/],
      [() => client.sessions.create(unknown), /caCertificates\[0\]` must be a certificate of this/],
    ];
    for (const [request, expected] of rows) {
      const error = await request().catch((thrown: unknown) => thrown);
      instance(error, APIError);
      is((error as APIError).status, 400);
      match((error as APIError).message, expected);
    }
  },
);

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
