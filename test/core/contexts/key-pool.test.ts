/** The pool of key pairs. They are real: RSA, made by its thread. */
import { createPublicKey } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealerOf } from '../../../core/common/sealer.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { contextService } from '../../../core/contexts/contexts.ts';
import { openKeyPool, privateKeyData } from '../../../core/contexts/key-pool.ts';
import { contextLinks } from '../../../core/contexts/links.ts';
import { openQuotas } from '../../../core/projects/quotas.ts';
import { openLog } from '../../../proto/common/log.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { bareStore, callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';

const keyPool = suite('core/contexts/key-pool');
const log = openLog({ role: 'test', level: 'silent' });
const sealer = sealerOf(Buffer.alloc(32, 1));

keyPool(
  'the pool generates sealed RSA keys of 3072 bits; calls wait while it is empty',
  async () => {
    await using bare = bareStore();
    const { store } = bare;
    await using keys = openKeyPool({
      store,
      sealer,
      log,
      now: Date.now,
      readyTarget: 2,
      pauseMs: 1,
    });
    const links = contextLinks({ sealer, now: Date.now, isRevoked: async () => false });
    const files = { remove: async () => undefined };
    const quotas = openQuotas({ store, defaults: readCoreConfig({}).quotas });
    const service = contextService({ store, keys, quotas, links, files, now: Date.now });
    const caller = callerOf(bare.projectId);
    const made = await Promise.all(
      [1, 2, 3].map(() => service.createContext({ projectId: undefined, name: undefined }, caller)),
    );
    assert.is(new Set(made.map(({ publicKey }) => publicKey)).size, 3);
    for (const { publicKey } of made) {
      assert.is(createPublicKey(publicKey).asymmetricKeyDetails?.modulusLength, 3_072);
    }
    await until(async () => (await store.countKeyPairs()) === 2);
    const [row] = bare.rows('SELECT id, private_key AS sealed FROM key_pairs');
    assert.ok(
      sealer.open(row?.['sealed'] as Buffer, privateKeyData(String(row?.['id']))).length > 1_000,
    );
  },
);

keyPool('a call that cannot wait long enough is KEYS_NOT_READY before its deadline', async () => {
  await using bare = bareStore();
  const { store } = bare;
  await using keys = openKeyPool({ store, sealer, log, now: Date.now, readyTarget: 0 });
  const fault = await faultOf(keys.wait(bare.projectId, callerOf(bare.projectId, 260).call));
  assert.is(fault.reason, 'KEYS_NOT_READY');
  assert.is(fault.row.retry, 'yes');
});

keyPool(
  'a call that waits while the store fails is answered with the error of the store',
  async () => {
    await using bare = bareStore();
    const away = () => Promise.reject(new Fault('CORE_UNAVAILABLE', 'away'));
    const store = { ...bare.store };
    store.addKeyPair = () => {
      store.createContext = away;
      return away();
    };
    await using keys = openKeyPool({ store, sealer, log, now: Date.now, readyTarget: 0 });
    const links = contextLinks({ sealer, now: Date.now, isRevoked: async () => false });
    const files = { remove: async () => undefined };
    const quotas = openQuotas({ store, defaults: readCoreConfig({}).quotas });
    const service = contextService({ store, keys, quotas, links, files, now: Date.now });
    const caller = callerOf(bare.projectId, 20_000);
    const wanted = { projectId: undefined, name: undefined };
    assert.is((await faultOf(service.createContext(wanted, caller))).reason, 'CORE_UNAVAILABLE');
  },
);

keyPool.run();
