/** A site and the egress before it, and clients that speak raw. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { openLog } from '../../../../proto/common/log.ts';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { type Egress, openEgress } from '../../../../runner/jail/egress/egress-proxy.ts';
import { until } from '../../../support/poll.ts';

const log = openLog({ role: 'test', level: 'silent', people: false });

export type Lab = AsyncDisposable & {
  /** http://127.0.0.1:port */
  site: string;
  host: string;
  asked: string[];
  /** Connections that the site has taken. */
  taken: Socket[];
  egress: Egress;
  client(): Promise<Client>;
  /** To the egress, that are open. */
  connections(): Promise<number>;
};

/** `answer`: the site's handler, or the raw response to any request. */
export async function openLab(
  answer: ((from: IncomingMessage, to: ServerResponse) => void) | string,
): Promise<Lab> {
  const egress = openEgress({ allow: cidrList(['127.0.0.0/8', '::1/128']), log });
  const asked: string[] = [];
  const taken: Socket[] = [];
  const site =
    typeof answer === 'string'
      ? createTcp((socket) => {
          socket.on('error', () => socket.destroy());
          socket.on('data', (bytes) => {
            asked.push(bytes.toString('latin1'));
            socket.write(answer, 'latin1');
          });
        })
      : createServer((from, to) => {
          asked.push(`${from.method} ${from.url}`);
          answer(from, to);
        });
  site.on('connection', (socket: Socket) => taken.push(socket));
  const server = createTcp(egress.handle);
  const [sitePort, serverPort] = await Promise.all([portOf(site), portOf(server)]);
  return {
    site: `http://127.0.0.1:${sitePort}`,
    host: `127.0.0.1:${sitePort}`,
    asked,
    taken,
    egress,
    client: async () => await Client.open(serverPort),
    connections: promisify(server.getConnections.bind(server)),
    async [Symbol.asyncDispose]() {
      egress.close();
      for (const socket of taken) socket.destroy();
      server.close();
      site.close();
    },
  };
}

async function portOf(server: ReturnType<typeof createTcp>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** One connection to the egress, raw. */
export class Client {
  readonly socket: Socket;
  said = '';
  isOver = false;

  static async open(port: number): Promise<Client> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Client(socket);
  }

  private constructor(socket: Socket) {
    this.socket = socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.said += text;
    });
    socket
      .on('error', () => undefined)
      .on('close', () => {
        this.isOver = true;
      });
  }

  /** Sends the text, and returns the response when it ends with `end`. */
  async ask(text: string, end: string): Promise<string> {
    this.said = '';
    this.socket.write(text, 'latin1');
    await until(() => this.said.endsWith(end));
    return this.said;
  }

  /** Sends the text, and returns the response up to the end of the connection. */
  async last(text: string): Promise<string> {
    this.said = '';
    this.socket.write(text, 'latin1');
    await until(() => this.isOver);
    return this.said;
  }
}

export const get = (url: string, ...lines: string[]): string =>
  [`GET ${url} HTTP/1.1`, 'Host: elsewhere', ...lines, '', ''].join('\r\n');
export const post = (url: string, body: string, ...lines: string[]): string =>
  `${get(url, ...lines).replace('GET', 'POST')}${body}`;
