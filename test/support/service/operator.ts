/** Operator calls to a running service. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { Channel } from '../../../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../../../proto/rpc/services.ts';
import type { CoreTls } from '../../../proto/tls/core-tls.ts';

export type Operator = Disposable & {
  operators: Clients['operators'];
  /** Of each call. */
  options: { metadata: { authorization: string } };
};

/** The address before the cores of roles apart, and the files for it. */
type Remote = { address: string } & CoreTls;

/** `using operator = operatorOf(stack.dataDir)` */
export function operatorOf(dataDir: string): Operator {
  const channel = channelOf(dataDir);
  const token = readFileSync(join(dataDir, 'keys', 'operator.token'), 'utf8').trim();
  return {
    operators: remoteClients(channel).operators,
    options: { metadata: { authorization: `Bearer ${token}` } },
    [Symbol.dispose]: () => channel[Symbol.dispose](),
  };
}

/** To core: by the socket of the data directory; over mTLS, to one of two, with the roles apart. */
export function channelOf(dataDir: string): Channel {
  const file = remoteFile(dataDir);
  if (!existsSync(file)) {
    return new Channel(`unix:${dataDir}/core.sock`, credentials.createInsecure());
  }
  const { address, ...tls } = JSON.parse(readFileSync(file, 'utf8')) as Remote;
  return new Channel(address, tls);
}

/** For `channelOf`, of roles apart. */
export function saveOperator(dataDir: string, remote: Remote): void {
  writeFileSync(remoteFile(dataDir), JSON.stringify(remote));
}

const remoteFile = (dataDir: string) => join(`${dataDir}-certs`, 'operator.json');
