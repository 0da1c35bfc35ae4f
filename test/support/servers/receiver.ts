/**
 * An https endpoint on 127.0.0.1 with a separate CA. It records each request, raw bytes included,
 * and responds as the test scripts it.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { until } from '../poll.ts';
import { tempDirectory } from '../temp.ts';
import { authority } from './certificates.ts';

export type Received = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  atMs: number;
};
/** The response to one request: a status, or a function that writes the response. */
export type Answer = number | ((response: ServerResponse, request: Received) => void);

export type Receiver = {
  /** https://127.0.0.1:<port> */
  url: string;
  /** PEM file for TABERN_WEBHOOK_CA. */
  caPath: string;
  requests: readonly Received[];
  /** Sets the responses to the next requests, in order; after them 200. */
  script(...answers: Answer[]): void;
  /** Sets the response when none is scripted; 200 by default. */
  otherwise(answer: (request: Received) => Answer): void;
  /** The first request that matches; waits for it. */
  received(fits: (request: Received) => boolean): Promise<Received>;
} & AsyncDisposable;

/** Starts a receiver. */
export async function startReceiver(): Promise<Receiver> {
  const dir = tempDirectory();
  const ca = await authority();
  const caPath = join(dir.path, 'ca.pem');
  writeFileSync(caPath, ca.cert);
  const requests: Received[] = [];
  const script: Answer[] = [];
  let fallback: (request: Received) => Answer = () => 200;
  const server = createServer(await ca.issue(), async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url: path = '', headers } = request;
    const body = Buffer.concat(chunks);
    const received = { method, path, headers, body, atMs: Date.now() };
    requests.push(received);
    const answer = script.shift() ?? fallback(received);
    if (typeof answer === 'number') response.writeHead(answer).end();
    else answer(response, received);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  return {
    url: `https://127.0.0.1:${address.port}`,
    caPath,
    requests,
    script: (...answers) => void script.push(...answers),
    otherwise(answer) {
      fallback = answer;
    },
    received: (fits) => until(() => requests.find(fits)),
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await dir[Symbol.asyncDispose]();
    },
  };
}
