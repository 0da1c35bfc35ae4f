import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { absoluteLinks, type Links } from '../../../gateway/rest/links.ts';
import { operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { Session } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { ask, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/rest/links');

const BASE = 'https://tabern.example/sub';

test('links are found in fields, in nested messages and in lists', () => {
  const pages: Links = new Map([['viewUrl', 'websocket']]);
  const links: Links = new Map<string, 'link' | Links>([
    ['url', 'link'],
    ['pages', pages],
  ]);
  const answer = { url: '/a?b', viewUrl: '/kept', pages: [{ viewUrl: '/v?t' }, { viewUrl: '' }] };
  assert.equal(absoluteLinks(answer, links, BASE), {
    url: `${BASE}/a?b`,
    viewUrl: '/kept',
    pages: [{ viewUrl: 'wss://tabern.example/sub/v?t' }, { viewUrl: '' }],
  });
  assert.equal(absoluteLinks([{ url: '/a' }, {}], links, 'http://h'), [{ url: 'http://h/a' }, {}]);
  assert.is(absoluteLinks(null, links, BASE), null);
});

test('only responses with links are searched', () => {
  const operations = operationsOf(readContract());
  const linked = operations.filter(({ links }) => links).map(({ method }) => method.name);
  for (const name of ['CreateContext', 'GetContextDownload', 'CreateSession', 'ListSessions']) {
    assert.ok(linked.includes(name), name);
  }
  for (const name of ['GetContext', 'InvokeFunction', 'ListSessionLogs']) {
    assert.not.ok(linked.includes(name), name);
  }
});

test('a running session has a connectUrl for this client, an ended one has none', async () => {
  const live = { connectUrl: '/connect?signingKey=k', seleniumRemoteUrl: '/webdriver' };
  await using gateway = await openGateway({
    sessions: {
      getSession: async ({ id }) => ({ session: Session.fromPartial(id === 'live' ? live : {}) }),
    },
  });
  const { host } = new URL(gateway.url);
  const [running, ended] = await Promise.all(
    ['live', 'ended'].map(async (id) => (await ask(gateway.url, 'GET', `/v1/sessions/${id}`)).json),
  );
  const { connectUrl, seleniumRemoteUrl } = running as Record<string, unknown>;
  assert.is(connectUrl, `ws://${host}/connect?signingKey=k`);
  assert.is(seleniumRemoteUrl, `http://${host}/webdriver`);
  assert.not.ok('connectUrl' in (ended as object));
});

test.run();
