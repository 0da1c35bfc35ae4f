/**
 * HPKE of RFC 9180 by hand, independent of the product's library: base mode, DHKEM(X25519,
 * HKDF-SHA256), HKDF-SHA256, AES-256-GCM; the first message of a context.
 */
import {
  createCipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';

/** Empty for secrets. The vectors of the RFC set all of them. */
type Setting = { info?: Buffer; aad?: Buffer; ephemeral?: KeyObject };

const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI = Buffer.from('302a300506032b656e032100', 'hex');
const KEM = Buffer.from('KEM\x00\x20', 'latin1');
const SUITE = Buffer.from('HPKE\x00\x20\x00\x01\x00\x02', 'latin1');
const NOTHING = Buffer.alloc(0);

export function privateKeyOf(raw: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8, raw]), format: 'der', type: 'pkcs8' });
}

/** enc | ciphertext | tag. */
export function sealByHand(publicKey: Buffer, plain: Buffer, setting: Setting = {}): Buffer {
  const { info = NOTHING, aad = NOTHING } = setting;
  const own = setting.ephemeral ?? generateKeyPairSync('x25519').privateKey;
  const spki = Buffer.concat([SPKI, publicKey]);
  const theirs = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  const shared = diffieHellman({ privateKey: own, publicKey: theirs });
  const exported = createPublicKey(own).export({ format: 'der', type: 'spki' });
  const enc = exported.subarray(SPKI.length);
  const kem = labels(KEM);
  const context = Buffer.concat([enc, publicKey]);
  const secret = kem.expand(kem.extract(NOTHING, 'eae_prk', shared), 'shared_secret', {
    info: context,
    length: 32,
  });
  const suite = labels(SUITE);
  const schedule = Buffer.concat([
    Buffer.of(0),
    suite.extract(NOTHING, 'psk_id_hash', NOTHING),
    suite.extract(NOTHING, 'info_hash', info),
  ]);
  const prk = suite.extract(secret, 'secret', NOTHING);
  const key = suite.expand(prk, 'key', { info: schedule, length: 32 });
  const nonce = suite.expand(prk, 'base_nonce', { info: schedule, length: 12 });
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(aad);
  return Buffer.concat([enc, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** The members of a request that stores the value, for the answer of GET /v1/secrets/keypair. */
export function sealedFor(
  { id, publicKey }: { id: string; publicKey: string },
  value: string | Buffer,
) {
  const sealed = sealByHand(Buffer.from(publicKey, 'base64'), Buffer.from(value));
  return { keypairId: id, sealedSecretValue: sealed.toString('base64') };
}

/** LabeledExtract and LabeledExpand of a suite; at most one block of SHA-256. */
function labels(suite: Buffer) {
  const labeled = (label: string) => [Buffer.from('HPKE-v1'), suite, Buffer.from(label)];
  const hmac = (key: Buffer, text: Buffer[]) =>
    createHmac('sha256', key).update(Buffer.concat(text)).digest();
  return {
    extract: (salt: Buffer, label: string, ikm: Buffer) => hmac(salt, [...labeled(label), ikm]),
    expand(prk: Buffer, label: string, { info, length }: { info: Buffer; length: number }) {
      const text = [Buffer.of(0, length), ...labeled(label), info, Buffer.of(1)];
      return hmac(prk, text).subarray(0, length);
    },
  };
}
