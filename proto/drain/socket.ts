/**
 * The socket file `<data>/drain.sock` (0600), by which `tabern drain` and `tabern upgrade` reach
 * the process that works on a data directory. Open until the process has ended its work.
 */
import { once } from 'node:events';
import { chmodSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { makeDirectory } from '../common/durable.ts';
import { ConfigError } from '../common/env.ts';
import { SOCKET_PATH_MAX_BYTES } from '../common/limits.ts';
import { type Drained, openDrainRequests } from './requests.ts';

const CONNECTIONS_MAX = 16;
/** At the end, connections have this long to receive their answers. Ours. */
const CLOSE_MS = 1_000;

export function drainSocketOf(dataDir: string): string {
  return join(dataDir, 'drain.sock');
}

/** Replaces the file of a process that has ended, or of a runner that this one supersedes. */
export async function openDrainSocket(dataDir: string, drained: Drained): Promise<AsyncDisposable> {
  makeDirectory(dataDir);
  const path = drainSocketOf(dataDir);
  const requests = openDrainRequests(drained);
  const server = createServer((request, response) => {
    if (requests.serve(request, response)) return;
    request.resume();
    response.writeHead(404).end('POST /drain\n');
  });
  server.maxConnections = CONNECTIONS_MAX;
  // The file that node removes at the end has the first name; the second may be another's by then.
  const aside = `${path}.${process.pid}`;
  if (Buffer.byteLength(aside) > SOCKET_PATH_MAX_BYTES) {
    throw new ConfigError(`too long for a socket, use a shorter data directory: ${aside}`);
  }
  rmSync(aside, { force: true });
  server.listen(aside);
  await once(server, 'listening');
  chmodSync(aside, 0o600);
  const { ino } = statSync(aside);
  renameSync(aside, path);
  return {
    async [Symbol.asyncDispose]() {
      if (statSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path);
      const closed = once(server, 'close');
      requests.close();
      server.close();
      server.closeIdleConnections();
      const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
      await closed;
      clearTimeout(cut);
    },
  };
}
