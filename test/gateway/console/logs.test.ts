/** Parts of a protocol log for the console: parsed messages only, and where to go on. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ListSessionLogsRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { ask, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/console/logs');

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const PATH = `/console/api/v1/sessions/${ID}/logs`;
const message = { timestamp: 5, rawBody: '{"unparsed":1}' };
const entry = {
  method: 'Page.navigate',
  pageId: 1,
  sessionId: ID,
  timestamp: 5,
  frameId: undefined,
  loaderId: undefined,
  request: { ...message, params: { url: 'https://a.example/' } },
  response: { ...message, timestamp: 7, result: undefined },
};

test('a part has its entries without their unparsed messages, and its end', async () => {
  const asked: ListSessionLogsRequest[] = [];
  const sessions = {
    async listSessionLogs(wanted: ListSessionLogsRequest) {
      asked.push(wanted);
      return { logs: [entry], next: wanted.from === 3 ? undefined : 3, end: 3 };
    },
  };
  await using gateway = await openGateway({ sessions });
  const first = await ask(gateway.url, 'GET', PATH);
  assert.is(first.status, 200);
  assert.equal(first.json, {
    logs: [
      {
        method: 'Page.navigate',
        pageId: 1,
        sessionId: ID,
        timestamp: 5,
        request: { timestamp: 5, params: { url: 'https://a.example/' } },
        response: { timestamp: 7, result: {} },
      },
    ],
    end: 3,
    isEnd: false,
  });
  const second = await ask(gateway.url, 'GET', `${PATH}?from=3`);
  assert.is((second.json as { isEnd: boolean }).isEnd, true);
  assert.equal(asked, [
    { id: ID, from: 0 },
    { id: ID, from: 3 },
  ]);
  for (const from of ['-1', 'x', '1.5', '9999999999']) {
    const refused = await ask(gateway.url, 'GET', `${PATH}?from=${from}`);
    assert.is(refused.status, 400, from);
    assert.match(refused.text, /from/);
  }
  assert.is(asked.length, 2);
});

test.run();
