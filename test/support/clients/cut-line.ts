/** A TCP connection to the service that is cut after a random number of bytes, also in a frame. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type CutLine = AsyncDisposable & {
  /** The same URL over the line. */
  over(url: string): string;
  /** Connections are cut after at most so many bytes, most of them early; 0: they are not. */
  cutWithin(bytes: number): void;
  /** Connections that were cut. */
  readonly cuts: number;
  /** Cuts all at once. */
  cut(): void;
  /** While it is refused, no connection is opened. */
  refuse(isRefused: boolean): void;
};

export async function openCutLine(target: string): Promise<CutLine> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let within = 0;
  let cuts = 0;
  let isRefused = false;
  const server = createServer((near) => {
    if (isRefused) return void near.destroy();
    const far = connect(Number(port), hostname);
    let left = within === 0 ? Number.POSITIVE_INFINITY : Math.ceil(Math.random() ** 2 * within);
    let isCut = false;
    const pass = (from: Socket, to: Socket): void => {
      open.add(from);
      from.setNoDelay().on('error', () => to.destroy());
      from.on('data', (bytes) => {
        to.write(bytes.subarray(0, left));
        left -= bytes.length;
        if (left > 0 || isCut) return;
        isCut = true;
        cuts += 1;
        // the last bytes of this direction arrive, as a part of a frame
        to.end();
        from.destroy();
      });
      from.on('end', () => to.end());
      from.on('close', () => {
        open.delete(from);
        to.destroySoon();
      });
    };
    pass(near, far);
    pass(far, near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    over(url) {
      const address = new URL(url);
      address.port = String((server.address() as AddressInfo).port);
      return address.href;
    },
    cutWithin(bytes) {
      within = bytes;
    },
    get cuts() {
      return cuts;
    },
    cut,
    refuse(isRefusedNow) {
      isRefused = isRefusedNow;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      cut();
    },
  };
}
