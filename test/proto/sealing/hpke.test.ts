/** Sealed values: the RFC's vectors, an implementation by hand, and damage. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newHpkeKeyPair, open, SEALED_MIN_BYTES, seal } from '../../../proto/sealing/hpke.ts';
import { privateKeyOf, sealByHand } from '../../support/clients/seal.ts';

const hpke = suite('hpke');
const hex = (text: string) => Buffer.from(text, 'hex');
/**
 * Base mode, kem 0x0020, kdf 0x0001, aead 0x0002: the vectors that RFC 9180, Appendix A refers to
 * have this suite; its own text has not.
 */
const VECTOR = {
  info: hex('4f6465206f6e2061204772656369616e2055726e'),
  privateKey: hex('497b4502664cfea5d5af0b39934dac72242a74f8480451e1aee7d6a53320333d'),
  publicKey: hex('430f4b9859665145a6b1ba274024487bd66f03a2dd577d7753c68d7d7d00c00c'),
  ephemeral: hex('179d4b53b6365c45b600c4163b61d95cbc2f4d9e36f1695558dce265ab8bab11'),
  enc: hex('6c93e09869df3402d7bf231bf540fadd35cd56be14f97178f0954db94b7fc256'),
  aad: hex('436f756e742d30'),
  plain: hex('4265617574792069732074727574682c20747275746820626561757479'),
  ciphertext: hex(
    'e5d84cd531cfb583096e7cfa9641bd3079cf3a91cda813c52deb5f512be9931980a41de125a925cdad859d5b7a',
  ),
};
const VALUE = Buffer.from('a value with ü and\na second line');

hpke('the implementation by hand seals as the vector of the RFC', () => {
  const { publicKey, plain, info, aad } = VECTOR;
  const ephemeral = privateKeyOf(VECTOR.ephemeral);
  const sealed = sealByHand(publicKey, plain, { info, aad, ephemeral });
  const wanted = Buffer.concat([VECTOR.enc, VECTOR.ciphertext]);
  assert.is(sealed.toString('hex'), wanted.toString('hex'));
});

hpke('a value that was sealed by hand for the key of the vector is opened', async () => {
  const sealed = sealByHand(VECTOR.publicKey, VALUE);
  assert.is(Buffer.from(await open(VECTOR.privateKey, sealed)).toString(), VALUE.toString());
});

hpke('own keys: sealed by hand or by the library, and both layouts are equal', async () => {
  const { publicKey, privateKey } = await newHpkeKeyPair();
  assert.equal([publicKey.length, privateKey.length], [32, 32]);
  for (const value of [Buffer.alloc(0), VALUE, Buffer.alloc(65_488, 7)]) {
    const byHand = sealByHand(Buffer.from(publicKey), value);
    const byLibrary = await seal(publicKey, value);
    assert.is(byHand.length, value.length + SEALED_MIN_BYTES);
    assert.is(byLibrary.length, byHand.length);
    for (const sealed of [byHand, byLibrary]) {
      assert.ok(value.equals(await open(privateKey, sealed)));
    }
  }
});

hpke('another key, a changed byte and a missing byte do not open', async () => {
  const { publicKey, privateKey } = await newHpkeKeyPair();
  const sealed = Buffer.from(await seal(publicKey, VALUE));
  const refused = async (key: Uint8Array, value: Uint8Array) =>
    await open(key, value).then(
      () => false,
      () => true,
    );
  assert.ok(await refused((await newHpkeKeyPair()).privateKey, sealed));
  for (const at of [0, 40, sealed.length - 1]) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.ok(await refused(privateKey, changed), `byte ${at}`);
  }
  assert.ok(await refused(privateKey, sealed.subarray(0, -1)));
  assert.ok(await refused(privateKey, sealed.subarray(0, 20)));
});

hpke.run();
