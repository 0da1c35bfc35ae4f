/** The browser session that a relay prepares for its first client. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { openRelay } from '../../../../runner/sessions/relay/relay.ts';
import { listen, log, openLab, until } from '../../browser/lab.ts';

const prepared = suite('runner/sessions/relay/prepared-root');
const ATTACH = 'Target.attachToBrowserTarget';

prepared('the prepared root serves one client, and a failed one is attached again', async () => {
  await using lab = await openLab({ allow: [] });
  for (const isBroken of [false, true]) {
    const made: string[] = [];
    let fails = isBroken;
    const { pipe } = lab.chrome;
    const call: typeof pipe.call = async (method, ...rest) => {
      if (method !== ATTACH) return await pipe.call(method, ...rest);
      if (fails) {
        fails = false;
        throw new Error('not now');
      }
      const answer = await pipe.call(method, ...rest);
      made.push(String(answer['sessionId']));
      return answer;
    };
    const relay = openRelay({ ...lab.chrome, pipe: { ...pipe, call } }, { log });
    const server = createServer().on('upgrade', relay.serve);
    const url = `ws://127.0.0.1:${await listen(server)}/`;
    const clients = await Promise.all([connected(url), connected(url)]);
    for (const client of clients) {
      client.send('{"id":1,"method":"Browser.getVersion"}');
      const [answer] = await once(client, 'message');
      assert.match(String(answer), /^\{"id":1,"result":\{"protocolVersion"/);
    }
    assert.is(new Set(made).size, 2);
    assert.is(made.length, 2);
    relay.close(1001, 'the test is over');
    await until(() => relay.clients === 0, 'the clients are closed');
    server.close();
  }
});

async function connected(url: string): Promise<WebSocket> {
  const client = new WebSocket(url);
  await once(client, 'open');
  return client;
}

prepared.run();
