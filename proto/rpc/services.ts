/**
 * All services by short name, so that a role can open all clients or register all handlers at once.
 */
import type { Server } from '@grpc/grpc-js';
import { BlobServiceService } from '../gen/tabern/v1/blobs.pb.ts';
import { ConsoleServiceService } from '../gen/tabern/v1/console.pb.ts';
import { ConsoleLoginServiceService } from '../gen/tabern/v1/console_logins.pb.ts';
import { ConsoleShareServiceService } from '../gen/tabern/v1/console_shares.pb.ts';
import { ContextServiceService } from '../gen/tabern/v1/contexts.pb.ts';
import { DeliveryServiceService } from '../gen/tabern/v1/deliveries.pb.ts';
import { DownloadServiceService } from '../gen/tabern/v1/downloads.pb.ts';
import {
  CertificateServiceService,
  ExtensionServiceService,
} from '../gen/tabern/v1/extensions.pb.ts';
import { FunctionServiceService } from '../gen/tabern/v1/functions.pb.ts';
import { HandoffServiceService } from '../gen/tabern/v1/handoffs.pb.ts';
import { HealthServiceService } from '../gen/tabern/v1/health.pb.ts';
import {
  InvocationServiceService,
  ScheduleServiceService,
} from '../gen/tabern/v1/invocations.pb.ts';
import { OneShotServiceService } from '../gen/tabern/v1/one_shots.pb.ts';
import {
  AuditServiceService,
  OperatorConsoleServiceService,
} from '../gen/tabern/v1/operator_console.pb.ts';
import { OperatorServiceService } from '../gen/tabern/v1/operators.pb.ts';
import { ProjectServiceService } from '../gen/tabern/v1/projects.pb.ts';
import { RunnerServiceService } from '../gen/tabern/v1/runners.pb.ts';
import { SecretServiceService } from '../gen/tabern/v1/secrets.pb.ts';
import { LabelServiceService, SessionServiceService } from '../gen/tabern/v1/sessions.pb.ts';
import { ConsoleSettingsServiceService } from '../gen/tabern/v1/settings.pb.ts';
import { WebhookServiceService } from '../gen/tabern/v1/webhooks.pb.ts';
import { type Handlers, local, type OnError, type RpcClient } from './local.ts';
import { type Channel, MESSAGE_MAX_BYTES, type Mounting, mount, remote } from './remote.ts';

export const SERVICES = {
  operators: OperatorServiceService,
  projects: ProjectServiceService,
  contexts: ContextServiceService,
  sessions: SessionServiceService,
  downloads: DownloadServiceService,
  handoffs: HandoffServiceService,
  extensions: ExtensionServiceService,
  certificates: CertificateServiceService,
  labels: LabelServiceService,
  functions: FunctionServiceService,
  invocations: InvocationServiceService,
  oneShots: OneShotServiceService,
  schedules: ScheduleServiceService,
  secrets: SecretServiceService,
  webhooks: WebhookServiceService,
  blobs: BlobServiceService,
  runners: RunnerServiceService,
  deliveries: DeliveryServiceService,
  console: ConsoleServiceService,
  audit: AuditServiceService,
  consoleSettings: ConsoleSettingsServiceService,
  operatorConsole: OperatorConsoleServiceService,
  consoleLogins: ConsoleLoginServiceService,
  consoleShares: ConsoleShareServiceService,
  health: HealthServiceService,
} as const;

type Services = typeof SERVICES;
export type ServiceName = keyof Services;
export type AllHandlers = { [S in ServiceName]: Handlers<Services[S]> };
export type Clients = { [S in ServiceName]: RpcClient<Services[S]> };

/** Services whose requests contain results, logs and files. */
const CARRIERS: ReadonlySet<ServiceName> = new Set(['runners', 'blobs']);
/** Ours: a gateway reads bodies of 1 MiB, most of which are refused below 64 KiB. */
const REQUEST_MAX_BYTES = 1 << 20;

const NAMES = Object.keys(SERVICES) as ServiceName[];

/** Clients that call the handlers in this process. */
export function localClients(handlers: AllHandlers, options: { onError: OnError }): Clients {
  const clients = NAMES.map((name) => [
    name,
    local(SERVICES[name], handlers[name] as never, options),
  ]);
  return Object.fromEntries(clients) as Clients;
}

/** Clients over gRPC, which live as long as the channel. */
export function remoteClients(channel: Channel): Clients {
  return Object.fromEntries(
    NAMES.map((name) => [name, remote(SERVICES[name], channel)]),
  ) as Clients;
}

/** Registers all services on a gRPC server. */
export function mountAll(server: Server, handlers: AllHandlers, how: Mounting): void {
  for (const name of NAMES) {
    const maxBytes = CARRIERS.has(name) ? MESSAGE_MAX_BYTES : REQUEST_MAX_BYTES;
    mount(server, SERVICES[name], handlers[name] as never, { ...how, maxBytes });
  }
}
