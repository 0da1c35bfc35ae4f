/**
 * A real Chrome in a real jail with its relay on a loopback port, and a web site. Disposal ends
 * them all.
 */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { openLog } from '../../../proto/common/log.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { findChrome } from '../../../runner/browser/find.ts';
import { type Chrome, launchChrome } from '../../../runner/browser/launch.ts';
import { canNest } from '../../../runner/jail/backends/bwrap.ts';
import { type Egress, openEgress } from '../../../runner/jail/egress/egress-proxy.ts';
import { openJail } from '../../../runner/jail/open.ts';
import type { ProtocolRecorder } from '../../../runner/sessions/log/recorder.ts';
import { openRelay, type Relay } from '../../../runner/sessions/relay/relay.ts';

export const log = openLog({ role: 'test', level: 'silent', people: false });

/** Options of a call to a page, for a machine that is busy: the components wait 2 s. */
export const PATIENT = { timeoutMs: 60_000 };

export type Lab = AsyncDisposable & {
  chrome: Chrome;
  relay: Relay;
  runDir: string;
  connectUrl: string;
  siteUrl: string;
  /** The paths that the site received. */
  asked: string[];
};

/**
 * `allow`: private blocks that this Chrome may reach; `program` and `system`: which Chrome, as
 * findChrome takes them; `profileDir`: an own one when absent.
 */
type LaunchOne = {
  runDir: string;
  allow: string[];
  program?: string;
  system?: string[];
  profileDir?: string;
  egress?: Egress;
  isBackground?: boolean;
  ignoreCertificateErrors?: boolean;
  caCertificates?: readonly Uint8Array[];
  /** bwrap by default. */
  sandbox?: 'bwrap' | 'landlock' | 'none';
};

export async function openLab(
  options: Omit<LaunchOne, 'runDir'> & { recorder?: ProtocolRecorder },
): Promise<Lab> {
  const runDir = mkdtempSync(join(tmpdir(), 'tabern-lab-'));
  const chrome = await launchOne({ runDir, ...options });
  const relay = openRelay(chrome, { log, recorder: options.recorder });
  const relayServer = createServer();
  relayServer.on('upgrade', relay.serve);
  const asked: string[] = [];
  const site = createServer(answer(asked));
  const sockets = new WebSocketServer({ server: site });
  sockets.on('connection', (socket, request) => {
    asked.push(`ws ${request.url}`);
    socket.send('hello');
  });
  const [relayPort, sitePort] = await Promise.all([listen(relayServer), listen(site)]);
  return {
    chrome,
    relay,
    runDir,
    asked,
    connectUrl: `ws://127.0.0.1:${relayPort}/`,
    siteUrl: `http://127.0.0.1:${sitePort}`,
    async [Symbol.asyncDispose]() {
      relay.close(1001, 'the test is over');
      await chrome.close();
      for (const socket of sockets.clients) socket.terminate();
      for (const server of [relayServer, site]) {
        server.close();
        server.closeAllConnections();
      }
      await rm(runDir, { recursive: true, force: true });
    },
  };
}

export async function launchOne(options: LaunchOne): Promise<Chrome> {
  const { runDir, allow, program, system, profileDir, egress, isBackground } = options;
  const { ignoreCertificateErrors, caCertificates } = options;
  const jail = await openJail({ sandbox: options.sandbox ?? 'bwrap', log });
  return launchChrome({
    jail,
    hasSandbox: await canNest(jail, log),
    engine: await findChrome({
      cacheDir: join(runDir, 'cache'),
      log,
      shellOnly: !jail.hasUnixSockets,
      ...(program === undefined ? {} : { program }),
      ...(system === undefined ? {} : { system }),
    }),
    egress: egress ?? openEgress({ allow: cidrList(allow), log, isBrowser: true }),
    runDir,
    log,
    caCertificates,
    ...(profileDir === undefined ? {} : { profileDir }),
    ...(isBackground === undefined ? {} : { isBackground }),
    ...(ignoreCertificateErrors === undefined ? {} : { ignoreCertificateErrors }),
  });
}

function answer(asked: string[]): RequestListener {
  return (request, response) => {
    asked.push(request.url ?? '');
    const url = new URL(request.url ?? '', 'http://site');
    if (url.pathname === '/to') {
      response.writeHead(302, { location: url.searchParams.get('url') ?? '/' }).end();
    } else if (url.pathname === '/file') {
      response.writeHead(200, { 'content-disposition': 'attachment; filename=a.txt' }).end('file');
    } else {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>the site</title>');
    }
  };
}

export async function listen(server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen({ host: '127.0.0.1', port: 0 }, resolve);
  await promise;
  return (server.address() as AddressInfo).port;
}

/** Polls until it is so; fails after 60 s. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
