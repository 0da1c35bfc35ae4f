/**
 * The sockets between a function host and its supervisor: control, browsers, internet. They are
 * unix sockets that the jail mounts. A jail that allows no unix sockets gets a descriptor for
 * control, and loopback ports of the machine, which no other jail may connect to.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, type BlockList, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { type Egress, openEgress } from '../jail/egress/egress-proxy.ts';
import { openListener } from '../jail/egress/listener.ts';
import type { Jail } from '../jail/jail.ts';
import {
  type KeyAuthenticatedServer,
  openKeyAuthenticatedServer,
  type UpgradeHandler,
} from '../sessions/server/key-authenticated-server.ts';

export type Broker = Pick<KeyAuthenticatedServer<UpgradeHandler>, 'register' | 'serve'> &
  AsyncDisposable;

/** Opens internet access of a host at a socket; `serve` handles connections accepted elsewhere. */
export type OpenEgress = (
  socketPath: string,
) => Promise<AsyncDisposable & { serve(socket: Socket): void } & Pick<Egress, 'onRefusal'>>;

/** The descriptor of control when it is not a socket file. */
export const CONTROL_FD = 3;

export type HostSockets = AsyncDisposable & {
  broker: Broker;
  /** Absent: no internet access. */
  egress: Pick<Egress, 'onRefusal'> | undefined;
  /** Loopback ports, where unix sockets are not allowed. */
  ports: { cdp: number; egress: number | undefined } | undefined;
  /** The control connection, once the host has connected. */
  control(child: ChildProcess, signal: AbortSignal): Promise<Socket>;
};

export async function openHostSockets(
  dir: string,
  { jail, openEgress: open }: { jail: Jail; openEgress: OpenEgress | undefined },
): Promise<HostSockets> {
  await using opening = new AsyncDisposableStack();
  const broker = opening.use(await openBroker(join(dir, 'cdp.sock')));
  const egress = await open?.(join(dir, 'egress.sock'));
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
    egress,
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

/**
 * Connects a host to its browsers: an upgrade with the signing key of a registered session is
 * served by that session's relay, and all other requests are refused.
 */
export function openBroker(socketPath: string): Promise<Broker> {
  return openKeyAuthenticatedServer<UpgradeHandler>(socketPath, {
    upgrade: (relay, { request, socket, head }) => relay.serve(request, socket, head),
    answer: () => false,
    unauthorized: { statusCode: 401, message: 'This key opens no session here.' },
  });
}

/** Internet access of handlers: one egress proxy per host. */
export function hostEgress(options: {
  allow: BlockList;
  /** Names the setting in refusals. */
  allowSetting?: string;
  log: Log;
}): OpenEgress {
  return async (socketPath) => {
    const egress = openEgress(options);
    const server = createServer((socket) => egress.handle(socket));
    server.listen(socketPath);
    await once(server, 'listening');
    return {
      serve: egress.handle,
      onRefusal: egress.onRefusal,
      async [Symbol.asyncDispose]() {
        const closed = once(server, 'close');
        server.close();
        egress.close();
        await closed;
      },
    };
  };
}

async function listenerFor(target: { serve(socket: Socket): void }) {
  const server = await openListener((socket) => target.serve(socket));
  return { server, port: (server.address() as AddressInfo).port };
}
