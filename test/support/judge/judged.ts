/**
 * A TCP proxy before a service, for every client of a test: fetch, a published command, a browser.
 * It forwards bytes unchanged in both directions, upgrades included, and ends each side when the
 * other ends. The judge checks each response; a violation fails the test when the proxy closes.
 * Links lead through the proxy too, because the service builds them from the client's Host.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { CONSOLE_PATHS } from '../../../gateway/routes/console/paths.ts';
import { describe } from '../../../gateway/routes/openapi.ts';
import { type Description, type Judge, openJudge, type Seen } from './judge.ts';
import { overhear } from './overheard.ts';

/** Many responses may contain the same violation. */
const FAULTS_MAX = 20;

/** Of all services of this process: half a second of CPU time for each would be lost. */
let judge: Judge | undefined;

/** Closing rejects with the violations. */
export type Judged = AsyncDisposable & { url: string };

/** Opens a proxy before the service at that address, which may start later. */
export async function openJudged(target: string): Promise<Judged> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const faults = new Set<string>();

  function tell(seen: Seen): void {
    if (faults.size === FAULTS_MAX) return;
    judge ??= openJudge(published());
    const fault = judge.verdict(seen);
    if (fault !== undefined) faults.add(fault);
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const there = { host: hostname, port: Number(port) };
    const far = connect({ ...there, allowHalfOpen: true, noDelay: true });
    const { asked, answered, ended } = overhear(tell);
    near.on('data', asked).pipe(far);
    far.on('data', answered).on('end', ended).pipe(near);
    follow(near, far);
    follow(far, near);
    for (const socket of [near, far]) {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
      if (faults.size > 0) throw new Error(`not as /openapi.json says:\n${[...faults].join('\n')}`);
    },
  };
}

/** A connection that fails or is refused fails on the other side too. */
function follow(one: Socket, other: Socket): void {
  one.on('error', () => other.resetAndDestroy());
}

/**
 * The body of GET /openapi.json, and the console's routes; not requested, because the service
 * may be down when its response is checked.
 */
function published(): Description {
  const registry = readContract();
  return describe(registry, operationsOf(registry), CONSOLE_PATHS) as Description;
}
