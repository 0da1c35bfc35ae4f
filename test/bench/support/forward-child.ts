/**
 * The least that stands between a client and a Chrome without a port, for relay.ts: a process that
 * makes messages of the debugging pipe of WebSocket frames, and frames of messages, and copies the
 * pages' connections to this machine by a SOCKS proxy. It judges and logs nothing. With the
 * argument `logs` it does the least of both: it parses each command and reads its method, and keeps
 * a line of each message, compressed as the service does. Its Chrome has a session of its own, as
 * those of the service: where Linux schedules by session (autogroup), 50 calls at once take half as
 * long again as with a Chrome of this session. Its first argument is the Chrome. It prints its
 * port, and ends when its parent disconnects.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { chown, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import { WebSocketServer } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { splitter } from '../../../runner/browser/cdp/split.ts';
import { framed } from '../../../runner/sessions/relay/ws-frames.ts';
import { listen } from '../../runner/browser/lab.ts';
import { joinSockets } from './join-sockets.ts';
import { flagsOf, NOBODY } from './plain-chrome.ts';

const END = Buffer.of(0);
/** RFC 1928: no authentication; connected. */
const [WELCOME, CONNECTED] = [Buffer.of(5, 0), Buffer.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0)];
/** The last bytes of a request. */
const PORT_BYTES = 2;
/** As runner/sessions/log/log-shipper.ts. */
const CHUNK_MAX = 500;
const COMPRESSED = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const compress = promisify(zstdCompress);

const profile = mkdtempSync(join(tmpdir(), 'tabern-bench-'));
const proxyPort = await listen(
  createServer({ noDelay: true }, (socket) => {
    proxy(socket).catch(() => socket.destroy());
  }),
);
const isRoot = process.getuid?.() === 0;
if (isRoot) await chown(profile, NOBODY, NOBODY);
const chrome = spawn(
  must(process.argv[2], 'a Chrome'),
  [
    ...flagsOf(profile),
    '--remote-debugging-pipe',
    `--proxy-server=socks5://127.0.0.1:${proxyPort}`,
    '--proxy-bypass-list=<-loopback>',
  ],
  {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    detached: true,
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  },
);
const [toChrome, fromChrome] = [chrome.stdio[3] as Writable, chrome.stdio[4] as Readable];
const logged = { entries: 0, bytes: 0, compressed: 0 };
const isLogging = process.argv[3] === 'logs';
let lines: string[] = [];
const server = createHttpServer();
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (client, request) => {
  const wire = request.socket;
  client.on('message', (text: Buffer) => {
    if (isLogging) judge(text);
    toChrome.cork();
    toChrome.write(text);
    toChrome.write(END);
    process.nextTick(() => toChrome.uncork());
  });
  let waiting: Buffer[] = [];
  const split = splitter((message) => void waiting.push(message), { skip: () => undefined });
  fromChrome.on('data', (bytes: Buffer) => {
    split(bytes);
    if (waiting.length > 0) wire.write(framed(waiting));
    if (isLogging) for (const message of waiting) record('event', message.toString());
    waiting = [];
  });
});
process.send?.({ port: await listen(server) });
// its CPU time so far
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1_000, ...logged });
});
process.on('disconnect', async () => {
  const gone = once(chrome, 'exit');
  chrome.kill();
  await gone;
  await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
});

function judge(bytes: Buffer): void {
  const text = bytes.toString();
  const { method } = JSON.parse(text) as { method: string };
  record(method, text);
}

function record(kind: string, text: string): void {
  lines.push(`{"at":${Date.now()},"kind":"${kind}","message":${text}}`);
  if (lines.length < CHUNK_MAX) return;
  const chunk = lines.join('\n');
  logged.entries += lines.length;
  logged.bytes += chunk.length;
  lines = [];
  void compress(chunk, COMPRESSED).then((packed) => {
    logged.compressed += packed.length;
  });
}

async function proxy(socket: Socket): Promise<void> {
  socket.on('error', () => socket.destroy());
  await once(socket, 'data');
  socket.write(WELCOME);
  const [asked] = (await once(socket, 'data')) as [Buffer];
  const port = asked.readUInt16BE(asked.length - PORT_BYTES);
  const far = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(far, 'connect');
  socket.write(CONNECTED);
  joinSockets(socket, far);
}
