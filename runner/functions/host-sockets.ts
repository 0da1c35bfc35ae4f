/**
 * The sockets between a function host and its supervisor: control, browsers, internet. They are
 * unix sockets that the jail mounts. A jail that allows no unix sockets gets a descriptor for
 * control, and loopback ports of the machine, which no other jail may connect to.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { openListener } from '../jail/egress/listener.ts';
import type { Jail } from '../jail/jail.ts';
import { type Broker, openBroker } from './browser-broker.ts';

/**
 * Opens internet access at a socket, for one host; `serve` handles connections accepted elsewhere.
 */
export type OpenEgress = (
  socketPath: string,
) => Promise<AsyncDisposable & { serve(socket: Socket): void }>;

/** The descriptor of control when it is not a socket file. */
export const CONTROL_FD = 3;

export type HostSockets = AsyncDisposable & {
  broker: Broker;
  hasEgress: boolean;
  /** Loopback ports, where unix sockets are not allowed. */
  ports: { cdp: number; egress: number | undefined } | undefined;
  /** The control connection, once the host has connected. */
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
