/**
 * The key pairs of projects, and the values that they open. A private key is stored sealed with the
 * master key; a value is opened for one leased invocation and is kept nowhere.
 */
import type { SecretWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { loadHpke, newHpkeKeyPair, open } from '../../proto/sealing/hpke.ts';
import { newId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { SealedSecret, SecretKeyPair } from '../store/types/functions.ts';
import type { Store } from '../store/types.ts';

/** A secret whose value cannot be opened: its name, never its value. */
export class UnreadableSecret extends Error {
  override readonly name = 'UnreadableSecret';
  readonly secretKey: string;

  constructor(secretKey: string, cause: unknown) {
    super('a secret could not be opened', { cause });
    this.secretKey = secretKey;
  }
}

/** All secrets of a function, opened. */
export type OpenSecrets = (owner: {
  functionId: string;
  projectId: string;
}) => Promise<SecretWork[]>;

export type SecretValues = ReturnType<typeof secretValues>;

export function secretValues({
  store,
  sealer,
  now,
}: {
  store: Pick<Store, 'getSecretKeyPair' | 'addSecretKeyPair' | 'sealedSecretsOf'>;
  sealer: Sealer;
  now: () => number;
}) {
  return {
    /** The project's pair, created on first use. */
    async keyPair(projectId: string): Promise<SecretKeyPair> {
      const stored = await store.getSecretKeyPair(projectId);
      if (stored) return stored;
      const { publicKey, privateKey: plain } = await newHpkeKeyPair();
      const id = newId();
      const privateKey = sealer.seal(plain, placeOf(id));
      return await store.addSecretKeyPair({ id, projectId, publicKey, privateKey, at: now() });
    },

    /**
     * For one answer to a runner: what opens the secrets of a function, each of them once however
     * many functions have it, and one after the other. It throws UnreadableSecret, or another error
     * when the secrets may be readable later.
     */
    opener(): OpenSecrets {
      const opened = new Map<string, Promise<string>>();
      return async (owner) => {
        const values: SecretWork[] = [];
        await loadHpke().catch((cause: unknown) => {
          throw new Fault('CORE_UNAVAILABLE', 'Secrets cannot be opened now.', {}, cause);
        });
        for (const one of await store.sealedSecretsOf(owner)) {
          const { id, secretKey, updatedAt } = one;
          const key = `${id}/${updatedAt}`;
          const value = opened.get(key) ?? plainOf(one, sealer);
          opened.set(key, value);
          try {
            values.push({ secretKey, value: await value });
          } catch (cause) {
            throw new UnreadableSecret(secretKey, cause);
          }
        }
        return values;
      };
    },
  };
}

async function plainOf(
  { sealed, keyPairId, privateKey }: SealedSecret,
  sealer: Sealer,
): Promise<string> {
  if (keyPairId === null || privateKey === null) throw new Error('its key pair is missing');
  const plain = await open(sealer.open(privateKey, placeOf(keyPairId)), sealed);
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(plain);
}

/** The associated data of a sealed private key. */
function placeOf(keyPairId: string): string {
  return `secret_key_pairs/${keyPairId}`;
}
