/** A machine to attack: services and files of others, and a record of those that were reached. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createSite } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Aim } from './attack.ts';

const SECRET = 'the database of the service';

export type Machine = AsyncDisposable & {
  aim: Omit<Aim, 'key' | 'runDir'>;
  /** The targets that received data. */
  heard: string[];
  /** What is not as it was. */
  changed(): string[];
};

export async function openMachine(): Promise<Machine> {
  const dir = await mkdtemp(join(tmpdir(), 'attacked-'));
  chmodSync(dir, 0o755);
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const secret = join(dataDir, 'tabern.db');
  writeFileSync(secret, SECRET, { mode: 0o600 });
  const heard: string[] = [];
  const site = createSite((request, answer) => {
    heard.push(`TCP ${request.url}`);
    answer.setHeader('access-control-allow-origin', '*').end('of the machine');
  });
  const path = join(dir, 'open.sock');
  const abstract = `tabern-attacked-${process.pid}-${Date.now()}`;
  const sockets = [path, `\0${abstract}`].map((at) => {
    const server = createServer((socket) => {
      heard.push(`unix ${at}`);
      socket.on('error', () => socket.destroy()).end('of the machine');
    });
    return server.listen(at);
  });
  const udp = createSocket('udp4').on('message', (_, { port, address }) => {
    heard.push('UDP');
    udp.send('of the machine', port, address);
  });
  udp.bind(0, '127.0.0.1');
  site.listen(0, '0.0.0.0');
  await Promise.all([site, ...sockets, udp].map((one) => once(one, 'listening')));
  chmodSync(path, 0o666);
  const { port } = site.address() as AddressInfo;
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const own = addresses.find(({ family, internal }) => family === 'IPv4' && !internal);
  return {
    heard,
    aim: {
      pid: process.pid,
      dataDir,
      secret,
      port,
      udpPort: udp.address().port,
      socket: path,
      abstract,
      address: own?.address ?? '127.0.0.1',
    },
    changed() {
      const names = readdirSync(dataDir).filter((name) => name !== 'tabern.db');
      return readFileSync(secret, 'utf8') === SECRET ? names : [...names, 'tabern.db'];
    },
    async [Symbol.asyncDispose]() {
      site.close();
      site.closeAllConnections();
      for (const server of sockets) server.close();
      udp.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
