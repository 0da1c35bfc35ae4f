/** A revoked key closes its own connections and live views only, with a real Chrome. */
import { once } from 'node:events';
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { type LiveView, viewUrlOf } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { operatorOf } from '../../support/service/operator.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/operations/revocation');

async function open(url: string): Promise<WebSocket> {
  const client = new WebSocket(url);
  await once(client, 'open');
  return client;
}

async function refusal(url: string): Promise<number> {
  const client = new WebSocket(url).on('error', () => {});
  const [, response] = await once(client, 'unexpected-response');
  return response.statusCode;
}

const keyed = (key: string) => ({ 'x-svc-api-key': key });
const get = (stack: Stack, path: string, key: string) => stack.fetch(path, { headers: keyed(key) });

journey(
  'connections and live views of a revoked key are closed, those of another stay',
  async () => {
    await using stack = await boot();
    using operator = operatorOf(stack.dataDir);
    const wanted = { project: 'default', name: 'leaked' };
    const { key, apiKey } = await operator.operators.createApiKey(wanted, operator.options);
    const { id, connectUrl } = await stack.call<{ id: string; connectUrl: string }>(
      '/v1/sessions',
      {
        json: { keepAlive: true },
      },
    );
    const path = `/v1/sessions/${id}`;
    const theirs = (await (await get(stack, path, key)).json()) as { connectUrl: string };
    const view = (await (await get(stack, `${path}/debug`, key)).json()) as LiveView;
    const old = `ws${stack.url.slice(4)}?apiKey=${key}&sessionId=${id}`;
    const urls = [theirs.connectUrl, view.wsUrl, viewUrlOf(view), old];
    const opened = await Promise.all(urls.map(open));
    const own = await open(connectUrl);
    const made = await stack.fetch('/v1/contexts', { method: 'POST', headers: keyed(key) });
    const { uploadUrl } = (await made.json()) as { uploadUrl: string };
    const upload = async () => (await fetch(uploadUrl, { method: 'PUT', body: 'x' })).status;
    is(await upload(), 422, 'the link is good, what it brings is not');

    const closed = Promise.all(opened.map((one) => once(one, 'close')));
    await operator.operators.revokeApiKey({ id: must(apiKey, 'key').id }, operator.options);
    for (const [code, reason] of await closed) {
      equal([code, String(reason)], [1008, 'the API key was revoked']);
    }
    for (const url of urls) is(await refusal(url), 401, url.slice(0, 30));
    // of several cores, another one may know a moment later
    await until(async () => (await get(stack, path, key)).status === 401);
    await until(async () => (await upload()) === 410);
    own.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
    const [answer] = await once(own, 'message');
    is(JSON.parse(String(answer)).id, 1);
    own.terminate();
  },
);

journey.run();
