/** Operator calls over the socket of a running service. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { Channel } from '../../../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../../../proto/rpc/services.ts';

export type Operator = Disposable & {
  operators: Clients['operators'];
  /** Of each call. */
  options: { metadata: { authorization: string } };
};

/** `using operator = operatorOf(stack.dataDir)` */
export function operatorOf(dataDir: string): Operator {
  const channel = new Channel(`unix:${dataDir}/core.sock`, credentials.createInsecure());
  const token = readFileSync(join(dataDir, 'keys', 'operator.token'), 'utf8').trim();
  return {
    operators: remoteClients(channel).operators,
    options: { metadata: { authorization: `Bearer ${token}` } },
    [Symbol.dispose]: () => channel[Symbol.dispose](),
  };
}
