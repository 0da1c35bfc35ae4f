/** One address with the metrics of several processes, as a monitoring system collects them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Address } from './front.ts';

/** Listens when it resolves. Answers with the texts of all; of one that is away, with none. */
export async function startFigures(at: Address, all: readonly Address[]): Promise<void> {
  const textOf = async ({ host, port }: Address): Promise<string> => {
    const answer = await fetch(`http://${host}:${port}/metrics`);
    return await answer.text();
  };
  const server = createServer(async (_, response) => {
    const texts = await Promise.all(all.map((one) => textOf(one).catch(() => '')));
    response.end(texts.join(''));
  });
  server.listen(at.port, at.host);
  await once(server, 'listening');
}
