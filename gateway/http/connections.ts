/**
 * Client connections, in shares by network: one client that opens as many as it can leaves room for
 * others. A reverse proxy in front counts as one client and may use half.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { openShares } from '../../proto/sharing/shares.ts';

/** Leading groups of an IPv6 address: a host receives a /64 (RFC 4291 2.5.4). */
const NETWORK_GROUPS = 4;

/** Closes connections beyond their network's share of `max` before a byte is read. */
export function shareConnections(server: Server, max: number): void {
  const shares = openShares(max);
  server.maxConnections = max;
  server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    if (!shares.acquire(network, 1)) {
      socket.destroy();
      return;
    }
    socket.once('close', () => shares.release(network, 1));
  });
}

/** An IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  if (!address.includes(':')) return address;
  const [head = '', tail = ''] = address.replace(/%.*$/, '').split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const zeros = Math.max(0, 8 - groups(head).length - groups(tail).length);
  const all = [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail)];
  return all.slice(0, NETWORK_GROUPS).join(':');
}
