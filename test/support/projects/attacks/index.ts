/**
 * Attempts of a hostile project from its handler: each returns `no: <why>` or what it reached.
 * Published and run by test/runner/attacks/escape.test.ts.
 */

import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { defineFn } from 'tabern';
import { browserAttacks } from './browser.ts';

type Params = {
  port: number;
  dataDir: string;
  pids: number[];
  secret: string;
  patienceMs: number;
};
type Found = Record<string, unknown>;

async function attempt(act: () => unknown): Promise<unknown> {
  try {
    return (await act()) ?? 'done';
  } catch (error) {
    return `no: ${(error as NodeJS.ErrnoException).code ?? error}`;
  }
}

async function all(attempts: Record<string, () => unknown>): Promise<Found> {
  const found: Found = {};
  for (const [name, act] of Object.entries(attempts)) found[name] = await attempt(act);
  return found;
}

/** The response to `say` from the other end. */
function talk(where: object, say: string, patienceMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect(where as { port: number });
    socket.setTimeout(patienceMs, () => socket.destroy(new Error('silence')));
    socket.on('connect', () => socket.write(say));
    socket.on('data', (bytes) => {
      heard += bytes;
      if (/^(CONNECT|GET \/\?)/.test(say)) socket.destroy(); // the head tells all
    });
    socket.on('error', reject).on('close', () => resolve(heard));
  });
}

defineFn('files', async (_, { dataDir, pids }: Params) => {
  const paths = [
    ...['/etc/passwd', '/etc/shadow', '/etc/hosts', '/root', '/home', '/sys', '/var', dataDir],
    ...['tabern.db', 'keys/master.key', 'keys/runner.token', 'run'].map((it) => `${dataDir}/${it}`),
    ...pids.flatMap((pid) => ['environ', 'mem', 'fd', 'root'].map((it) => `/proc/${pid}/${it}`)),
    '/proc/1/root/etc/passwd',
    '/proc/self/cwd/etc/passwd',
  ];
  const read = (path: string) => () =>
    attempt(() => readFileSync(path)).then((said) =>
      said === 'no: EISDIR' ? readdirSync(path) : said,
    );
  const places = ['/', '/app', '/fn', '/run', '/dev', '/bin', '/lib', '/proc/sys/kernel', '/etc'];
  const write = (dir: string) => () => writeFileSync(`${dir}/written`, 'x');
  return {
    read: await all(Object.fromEntries(paths.map((path) => [path, read(path)]))),
    write: await all(Object.fromEntries(places.map((dir) => [dir, write(dir)]))),
    pids: readdirSync('/proc').filter(Number),
    status: readFileSync('/proc/self/status', 'utf8'),
    // the targets of open descriptors, except streams, sockets and anonymous inodes
    fds: readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        const target = readlinkSync(`/proc/self/fd/${fd}`);
        const isOwn = /^(socket|anon_inode|\/dev\/null|\/proc)/.test(target);
        return isOwn ? [] : [`${fd} ${target.replace(/\d+/, '')}`];
      } catch {
        return []; // the descriptor of the listing
      }
    }),
    env: Object.keys(process.env),
  };
});

const HOSTS = [
  ...['127.0.0.1', 'localhost', 'LOCALHOST', 'localhost.', 'x.localhost', '2130706433', '0x7f.1'],
  ...['0177.0.0.1', '127.1', '0', '0.0.0.0', '%6c%6fcalhost', '[::1]', '[::]', '[::127.0.0.1]'],
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]'],
  ...['169.254.169.254', '[fd00:ec2::254]', '10.0.0.1', '192.168.0.1', '172.16.0.1', '100.64.0.1'],
];

defineFn('network', async (_, { port, dataDir, patienceMs }: Params) => {
  const ask = (where: object, say: string) => talk(where, say, patienceMs);
  const proxy = { host: '127.0.0.1', port: 3128 };
  const connects = HOSTS.map((host) => [
    `CONNECT ${host}`,
    () => ask(proxy, `CONNECT ${host}:${port} HTTP/1.1\r\nhost: x\r\n\r\n`),
  ]);
  const gets = HOSTS.map((host) => [
    `GET ${host}`,
    () =>
      ask(proxy, `GET http://${host}:${port}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`),
  ]);
  const upgrade = 'host: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n';
  return all({
    ...Object.fromEntries([...connects, ...gets]),
    direct: () => ask({ host: '127.0.0.1', port }, 'GET / HTTP/1.0\r\n\r\n'),
    metadata: () => ask({ host: '169.254.169.254', port: 80 }, 'GET / HTTP/1.0\r\n\r\n'),
    core: () => ask({ path: `${dataDir}/core.sock` }, 'x'),
    control: () => ask({ path: '/run/ctl.sock' }, 'x'),
    'a mail port': () => ask(proxy, 'CONNECT 8.8.8.8:25 HTTP/1.1\r\nhost: x\r\n\r\n'),
    'another signing key': () =>
      ask(
        { path: '/run/cdp.sock' },
        `GET /?signingKey=${'A'.repeat(43)} HTTP/1.1\r\n${upgrade}\r\n`,
      ),
    'no signing key': () => ask({ path: '/run/cdp.sock' }, `GET / HTTP/1.1\r\n${upgrade}\r\n`),
    udp: () =>
      new Promise((resolve, reject) => {
        const socket = createSocket('udp4').on('error', reject);
        socket.send('x', 53, '8.8.8.8', (error) => (error ? reject(error) : resolve('sent')));
      }),
    fetch: async () => (await fetch(`http://127.0.0.1:${port}/`)).text(),
  });
});

defineFn('processes', (_, { pids }: Params) =>
  all({
    ...Object.fromEntries(pids.map((pid) => [`signal ${pid}`, () => process.kill(pid, 0)])),
    shell: () => String(execFileSync('/bin/sh', ['-c', 'id'])),
    addon: () => process.dlopen({ exports: {} }, '/lib/x86_64-linux-gnu/libc.so.6'),
    'memory of init': () => closeSync(openSync(`/proc/${pids[0]}/mem`, 'r+')),
  }),
);

defineFn('browser', (ctx: { session: { connectUrl: string } }, params: Params) =>
  browserAttacks(ctx.session.connectUrl, params),
);

/** Reads what it can of the other run: the signing key would open the other's browser. */
defineFn('wait', async (ctx: { session: { connectUrl: string } }, { port }: Params) => {
  const socket = new WebSocket(ctx.session.connectUrl);
  const gone = new Promise((resolve) => socket.addEventListener('close', resolve));
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error('no browser')));
  });
  console.log('waiting', port);
  await gone;
  throw new Error('the browser has gone');
});
