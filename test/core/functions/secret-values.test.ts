/** Opening values for an answer to a runner: each once, and the current ones in the next answer. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { secretValues } from '../../../core/functions/secret-values.ts';
import { sealByHand } from '../../support/clients/seal.ts';
import { bareStore } from '../../support/core/bare-store.ts';
import { addFunctions } from '../console/projects.ts';

const test = suite('core/functions/secret-values');
const MAX = { count: 100, bytes: 1 << 20 };

test('an answer opens a value once for all functions that have it', async () => {
  await using bare = bareStore();
  const { store, projectId } = bare;
  let count = 0;
  const sealer = sealerOf(Buffer.alloc(32, 1));
  const open: typeof sealer.open = (...args) => {
    count += 1;
    return sealer.open(...args);
  };
  let at = 1;
  const values = secretValues({ store, sealer: { ...sealer, open }, now: () => at });
  const { id: keyPairId, publicKey } = await values.keyPair(projectId);
  const given = (text: string) => {
    const sealed = sealByHand(Buffer.from(publicKey), Buffer.from(text));
    return { projectId, keyPairId, sealed, at };
  };
  const functions = addFunctions(bare, projectId, ['a', 'b', 'c']);
  const ids = { A: newId(), B: newId() };
  for (const [secretKey, id] of Object.entries(ids)) {
    await store.createSecret({ id, secretKey, ...given(`value of ${secretKey}`) }, MAX);
    for (const { functionId } of functions) {
      await store.attachSecret({ functionId, secretId: id, projectId }, 50);
    }
  }
  const answer = async () => {
    const openSecrets = values.opener();
    const all = functions.map(({ functionId }) => openSecrets({ functionId, projectId }));
    const [first, ...others] = await Promise.all(all);
    for (const other of others) assert.equal(other, first);
    return first;
  };
  const second = { secretKey: 'B', value: 'value of B' };
  assert.equal(await answer(), [{ secretKey: 'A', value: 'value of A' }, second]);
  assert.is(count, 2);
  at = 2;
  await store.updateSecret({ id: ids.A, ...given('changed') }, MAX);
  assert.equal(await answer(), [{ secretKey: 'A', value: 'changed' }, second]);
  assert.is(count, 4, 'nothing is kept between answers');
});

test.run();
