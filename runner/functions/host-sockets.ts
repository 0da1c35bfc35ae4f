/**
 * The ways between a function host and its supervisor: control, its browsers, the internet. They
 * are unix sockets that its jail mounts. A jail that lets nobody use those gets a descriptor for
 * control, and ports of the machine's loopback, which it may connect to and no other jail may.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { openListener } from '../jail/egress/listener.ts';
import type { Jail } from '../jail/jail.ts';
import { type Broker, openBroker } from './browser-broker.ts';

/** Opens a way to the internet at a socket, for one host; `serve` takes who comes elsewhere. */
export type OpenEgress = (
  socketPath: string,
) => Promise<AsyncDisposable & { serve(socket: Socket): void }>;

/** Where the host finds control when it is no socket. */
export const CONTROL_FD = 3;

export type HostSockets = AsyncDisposable & {
  broker: Broker;
  hasEgress: boolean;
  /** Of loopback, where sockets are of no use. */
  ports: { cdp: number; egress: number | undefined } | undefined;
  /** Control, once the host is there. */
  control(child: ChildProcess, signal: AbortSignal): Promise<Socket>;
};

export async function openHostSockets(
  dir: string,
  { jail, openEgress }: { jail: Jail; openEgress: OpenEgress | undefined },
): Promise<HostSockets> {
  await using opening = new AsyncDisposableStack();
  const broker = opening.use(await openBroker(join(dir, 'cdp.sock')));
  const egress = await openEgress?.(join(dir, 'egress.sock'));
  if (egress) opening.use(egress);
  const control = jail.hasUnixSockets ? await openControl(join(dir, 'ctl.sock')) : undefined;
  opening.defer(() => void control?.close());
  const listeners = await Promise.all(
    jail.hasUnixSockets ? [] : [broker, ...(egress ? [egress] : [])].map(listenerFor),
  );
  for (const { server } of listeners) opening.defer(() => void server.close());
  const [cdp, egressPort] = listeners.map(({ port }) => port);
  const kept = opening.move();
  return {
    broker,
    hasEgress: egress !== undefined,
    ports: cdp === undefined ? undefined : { cdp, egress: egressPort },
    async control(child, signal) {
      if (control === undefined) return child.stdio[CONTROL_FD] as Socket;
      const [socket] = (await once(control, 'connection', { signal })) as [Socket];
      control.close();
      return socket;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function openControl(path: string): Promise<Server> {
  const control = createServer();
  control.maxConnections = 1;
  control.listen(path);
  await once(control, 'listening');
  return control;
}

async function listenerFor(target: { serve(socket: Socket): void }) {
  const server = await openListener((socket) => target.serve(socket));
  return { server, port: (server.address() as AddressInfo).port };
}
