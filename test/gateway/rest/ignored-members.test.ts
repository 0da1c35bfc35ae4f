/** The runner receives the names of unknown members of a session's settings. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { KEY } from '../../core/boot.ts';
import { openUploads } from '../routes/files/contexts.ts';

const test = suite('gateway/rest/ignored-members');

for (const isRemote of [false, true]) {
  const where = isRemote ? 'over gRPC' : 'in one process';

  test(`${where}: the runner receives the names of unknown browserSettings`, async () => {
    await using app = await openUploads({}, isRemote);
    const functionId = await app.publish({ name: 'f' });
    const settings = async (browserSettings: object) => {
      const answer = await fetch(`${app.gateway.url}/v1/functions/${functionId}/invoke`, {
        method: 'POST',
        headers: { 'x-svc-api-key': KEY, 'content-type': 'application/json' },
        body: JSON.stringify({ sessionCreateParams: { browserSettings } }),
      });
      assert.is(answer.status, 202, await answer.text());
      const { item } = must((await app.lease('INVOCATION'))[0], 'work');
      return JSON.parse(item?.$case === 'invocation' ? item.value.sessionParamsJson : '');
    };
    const odd = { sizes: 'small', 'ä,b': 1, [`x${'y'.repeat(200)}`]: 1, blockAds: true };
    const { ignoredMembers, browserSettings } = await settings(odd);
    const path = 'sessionCreateParams.browserSettings.';
    assert.equal(ignoredMembers.slice(0, 2), [`${path}sizes`, `${path}ä,b`]);
    assert.is(ignoredMembers[2]?.length, 64);
    assert.equal(browserSettings, { blockAds: true });
    assert.is((await settings({ blockAds: true })).ignoredMembers, undefined);
  });
}

test.run();
