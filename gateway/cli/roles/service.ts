/**
 * Core and gateway in this process, and the runner beside it. A newer process may take over: then
 * this one gives up core and the port, and keeps the runner, and the connections that pass through
 * it, until the sessions have ended.
 *   opened -> gave up -> retired | opened again
 */
import type { ChildProcess } from 'node:child_process';
import type { Env } from '../../../proto/common/env.ts';
import { type Log, openLog } from '../../../proto/common/log.ts';
import type { Metrics } from '../../../proto/common/metrics.ts';
import type { ProcessEnd } from '../../../proto/drain/end.ts';
import type { Drained } from '../../../proto/drain/requests.ts';
import { openDrainSocket } from '../../../proto/drain/socket.ts';
import { type GatewayConfig, gatewayTokenOf } from '../../config.ts';
import { type Gateway, startGateway } from '../../main.ts';
import { EXIT, Exit, gatewayFailure } from '../../process/exit-codes.ts';
import { metricsOf, showMetrics } from '../../process/metrics.ts';
import { type HandOver, keepRunner, type RunnerChild } from '../../process/runner-process.ts';
import type { Port } from '../../process/upgrade-ipc.ts';
import { type Core, openCore } from './core.ts';

type Given = {
  config: GatewayConfig;
  log: Log;
  end: ProcessEnd;
  upgrade: NonNullable<Drained['upgrade']>;
  /** The runner's process; one is started when it is absent. */
  prepared?: ChildProcess | undefined;
  /** Of the runner; that of the data directory when it is absent. */
  runnerId?: string;
};
type Opened = { core: Core; gateway: Gateway; shown: AsyncDisposable | undefined };

export type Service = {
  readonly core: Core;
  readonly gateway: Gateway;
  readonly runner: RunnerChild;
  port(): Port;
  giveUp(): Promise<void>;
  resume(port: Port): Promise<void>;
  /** Lets the runner end with its sessions. */
  retire(): void;
  /** Settles when no session and no connection is left, after `retire`. */
  retired: Promise<void>;
  /** Settles with the exit code when it could not be opened again. */
  broken: Promise<number>;
  /** Ends the sessions; core last, after `others`, whose sessions are reported to it. */
  close(others?: Promise<void>): Promise<void>;
};

/** `port`: that of a service which gave it up. Throws Exit when it cannot start. */
export async function openService(env: Env, given: Given, port?: Port): Promise<Service> {
  const { config, log, end, upgrade, prepared, runnerId } = given;
  /** Kept after the service gave up: each answers the command that asked for it. */
  const sockets = new AsyncDisposableStack();
  let runner: RunnerChild | undefined;
  const handOver: HandOver = (...connection) => runner?.handOver(...connection) ?? false;
  const samples = async () => (await runner?.samples()) ?? [];
  const open = async (at?: Port): Promise<Opened> => {
    await using opening = new AsyncDisposableStack();
    const metrics = await metricsOf(config.metricsListen, 'serve');
    const how = { log, beside: samples, end };
    const shown = await showMetrics(config.metricsListen, metrics, how);
    if (shown) opening.use(shown);
    const core = await openCore(env, metrics);
    opening.defer(() => core.close());
    const socket = await openDrainSocket(config.dataDir, { end, upgrade });
    opening.use(socket);
    const gateway = await openGateway(config, { core, handOver, metrics, port: at });
    opening.move();
    sockets.use(socket);
    return { core, gateway, shown };
  };
  let opened: Opened | undefined = await open(port);
  let last = opened;
  const gateways = [last.gateway];
  const ofRunner = { ...env, TABERN_DATA: config.dataDir, TABERN_CORE: last.core.address };
  const first = { ...(prepared && { prepared }), ...(runnerId && { runnerId }) };
  const kept = keepRunner(ofRunner, log, first);
  runner = kept;
  const retired = Promise.withResolvers<void>();
  const broken = Promise.withResolvers<number>();
  return {
    get core() {
      return last.core;
    },
    get gateway() {
      return last.gateway;
    },
    runner: kept,
    port: () => last.gateway.port(),
    retired: retired.promise,
    broken: broken.promise,
    async giveUp() {
      const { core, gateway, shown } = last;
      await shown?.[Symbol.asyncDispose]();
      await gateway.giveUp();
      opened = undefined;
      await core.close();
      gateway.cut();
    },
    async resume(at) {
      try {
        opened = await open(at);
      } catch (error) {
        log.error({ err: error }, 'the service could not be opened again');
        broken.resolve(error instanceof Exit ? error.code : EXIT.storage);
        throw error;
      }
      last = opened;
      gateways.push(last.gateway);
    },
    retire() {
      const idle = gateways.map((gateway) => gateway.idle());
      void Promise.all([kept.drain(), ...idle]).then(() => retired.resolve());
    },
    async close(others) {
      await Promise.all([...gateways.map((gateway) => gateway.close()), kept.close(), others]);
      await opened?.core.close();
      retired.resolve();
      await sockets.disposeAsync();
      await opened?.shown?.[Symbol.asyncDispose]();
    },
  };
}

async function openGateway(
  config: GatewayConfig,
  { core, ...rest }: { core: Core; handOver: HandOver; metrics: Metrics; port: Port | undefined },
): Promise<Gateway> {
  try {
    const log = openLog({ role: 'gateway', level: config.logLevel });
    const gatewayToken = gatewayTokenOf(config);
    return await startGateway(config, { clients: core.clients, gatewayToken, log, ...rest });
  } catch (error) {
    throw gatewayFailure(error, `${config.host}:${config.port}`);
  }
}
