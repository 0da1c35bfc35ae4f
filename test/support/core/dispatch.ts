/**
 * Core's delivery service on a bare store, a receiver, and senders between the two that the test
 * starts.
 */
import { readFileSync } from 'node:fs';
import {
  type DispatcherOptions,
  startDispatcher,
} from '../../../gateway/webhooks/sender-supervisor.ts';
import { openLog } from '../../../proto/common/log.ts';
import { DeliveryServiceService } from '../../../proto/gen/tabern/v1/deliveries.pb.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { local } from '../../../proto/rpc/local.ts';
import { startReceiver } from '../servers/receiver.ts';
import { overBytes } from '../wire.ts';
import { bootDeliveries } from './deliveries.ts';

const log = openLog({ role: 'test', level: 'silent' });

/** `metadata`: the sender's credentials, by call. */
export async function bootDispatch() {
  await using opened = new AsyncDisposableStack();
  const allow = cidrList(['127.0.0.0/8']);
  const receiver = opened.use(await startReceiver());
  const core = opened.use(bootDeliveries(allow));
  const { service, caller } = core;
  const metadata: string[] = [];
  const client = local(
    DeliveryServiceService,
    overBytes(DeliveryServiceService, {
      claimDeliveries: (request, call) => {
        metadata.push(call.metadata['authorization'] ?? '');
        return service.claimDeliveries(request, { ...caller, call });
      },
      reportAttempts: (request, call) => service.reportAttempts(request, { ...caller, call }),
    }),
    { onError: (error) => log.error(error) },
  );
  const ca = readFileSync(receiver.caPath, 'utf8');
  const start = (options: Partial<DispatcherOptions> = {}) =>
    startDispatcher({ client, token: 'token', senderId: 'one', allow, ca, log, ...options });
  const states = () => core.states().map(({ state }) => state);
  const parts = opened.move();
  return {
    receiver,
    core,
    client,
    metadata,
    start,
    states,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
