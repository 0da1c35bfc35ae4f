/**
 * Which runner a caller may be. The token is that of all runners: over a network, a client
 * certificate must name the id, and the address of the session server must be another machine's,
 * because gateways connect to it.
 */
import { hostIn, isLoopback, isRemote } from '../../proto/network/loopback.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import type { AnyHandler, Call, Definition } from '../../proto/rpc/local.ts';
import { inRange } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';

/** Ours: paths of sockets end at some 100 bytes, names of hosts at 253. */
const ADDRESS = /^(unix:\/.{1,500}|(tls:)?[^\s:/][^\s/]{0,300}:\d{1,5})$/;
const NAME_LENGTH = { min: 1, max: 128, unit: ' characters' };

/** The same handlers; requests that name a runner are checked first. */
export function ofHolders<D extends Definition>(
  service: Service<D, MachineCaller>,
): Service<D, MachineCaller> {
  const checked = Object.entries(service).map(([name, handler]) => {
    const handle = handler as (request: object, caller: MachineCaller) => ReturnType<AnyHandler>;
    return [
      name,
      async (request: object, caller: MachineCaller) => {
        if ('runnerId' in request) checkHolder(request as Holder, caller.call);
        return await (handle(request, caller) as Promise<unknown>);
      },
    ];
  });
  return Object.fromEntries(checked) as Service<D, MachineCaller>;
}

type Holder = { runnerId: string; instanceId: string };

function checkHolder({ runnerId, instanceId }: Holder, { peer }: Call): void {
  inRange('runnerId', runnerId.length, NAME_LENGTH);
  inRange('instanceId', instanceId.length, NAME_LENGTH);
  if (peer && !peer.mayBe(runnerId)) {
    throw invalidField('runnerId', 'must be a name of the client certificate.');
  }
}

/** Of a session server. Signing keys pass it: it may be in the clear on this machine only. */
export function checkAddress(address: string, { peer }: Call): void {
  const isSecure = /^(unix|tls):/.test(address);
  if (!ADDRESS.test(address) || !(isSecure || isLoopback(hostIn(address)))) {
    const plain = 'or <host>:<port> on loopback';
    throw invalidField('address', `must be unix:<path>, tls:<host>:<port>, ${plain}.`);
  }
  if (peer === undefined || isLoopback(peer.address)) return;
  const [, host = ''] = /^tls:(.*)$/.exec(address) ?? [];
  if (!isRemote(hostIn(host))) {
    throw invalidField('address', 'must be tls:<host>:<port> with a host that gateways can reach.');
  }
}
