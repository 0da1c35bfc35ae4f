/**
 * The ways between a function host and its supervisor: control, its browsers, the internet. They
 * are unix sockets that its jail mounts. A jail that lets nobody use those gets a descriptor for
 * control, and ports of the machine's loopback, which it may connect to and no other jail may.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { openInlet } from '../jail/egress/listener.ts';
import type { Jail } from '../jail/jail.ts';
import { type Broker, openBroker } from './browser-broker.ts';

/** Opens a way to the internet at a socket, for one host; `serve` takes who comes elsewhere. */
export type Outlet = (
  socketPath: string,
) => Promise<AsyncDisposable & { serve(socket: Socket): void }>;

/** Where the host finds control when it is no socket. */
export const CONTROL_FD = 3;

export type Ways = AsyncDisposable & {
  broker: Broker;
  hasOutlet: boolean;
  /** Of loopback, where sockets are of no use. */
  ports: { cdp: number; egress: number | undefined } | undefined;
  /** Control, once the host is there. */
  control(child: ChildProcess, signal: AbortSignal): Promise<Socket>;
};

export async function openWays(
  dir: string,
  { jail, outlet }: { jail: Jail; outlet: Outlet | undefined },
): Promise<Ways> {
  await using opening = new AsyncDisposableStack();
  const broker = opening.use(await openBroker(join(dir, 'cdp.sock')));
  const egress = await outlet?.(join(dir, 'egress.sock'));
  if (egress) opening.use(egress);
  const control = jail.hasUnixSockets ? await openControl(join(dir, 'ctl.sock')) : undefined;
  opening.defer(() => void control?.close());
  const inlets = await Promise.all(
    jail.hasUnixSockets ? [] : [broker, ...(egress ? [egress] : [])].map(inletTo),
  );
  for (const { server } of inlets) opening.defer(() => void server.close());
  const [cdp, out] = inlets.map(({ port }) => port);
  const kept = opening.move();
  return {
    broker,
    hasOutlet: egress !== undefined,
    ports: cdp === undefined ? undefined : { cdp, egress: out },
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

async function inletTo(way: { serve(socket: Socket): void }) {
  const server = await openInlet((socket) => way.serve(socket));
  return { server, port: (server.address() as AddressInfo).port };
}
