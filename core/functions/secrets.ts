/**
 * Secrets of functions: named values that clients seal for the project's key pair. A value is
 * stored as the client sealed it and is returned by no call; core opens it when an invocation of a
 * function that it is attached to is leased (secret-values.ts). A change takes effect at the next
 * lease. proto/spec/functions.md 11.
 */
import type { Secret, SecretServiceService } from '../../proto/gen/tabern/v1/secrets.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { SEALED_MIN_BYTES } from '../../proto/sealing/hpke.ts';
import { inRange, orNotFound, timeOf } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readPage } from '../api/pagination.ts';
import { isId, newId, pathId } from '../common/ids.ts';
import type { SecretRow, WrittenSecret } from '../store/types/functions.ts';
import type { Store } from '../store/types.ts';
import type { SecretValues } from './secret-values.ts';

/** Ours. */
export const SECRETS_MAX = 100;
const ATTACHED_MAX = 50;
const KEY_LENGTH = { min: 1, max: 128, unit: ' characters' };
/** Ours: the name of a property, and no text that a log or a terminal would show otherwise. */
const KEY = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** In bytes. Ours: a private key in PEM has 3 KiB. */
const SEALED_MAX_BYTES = 64 << 10;
/**
 * In bytes, of all sealed values of a project. Ours: no function has more, so 64 invocations in one
 * answer to a runner have 16 MiB, and one on its way to its handler has 1.5 MiB.
 */
const PROJECT_MAX_BYTES = 256 << 10;
const MAX = { count: SECRETS_MAX, bytes: PROJECT_MAX_BYTES };

type Options = { store: Store; values: SecretValues; now: () => number };
type Period = { startAt?: string | undefined; endAt?: string | undefined };

export function secretService({
  store,
  values,
  now,
}: Options): Service<typeof SecretServiceService, ProjectCaller> {
  return {
    async getSecretsKeypair(_, { projectId }) {
      const { id, publicKey } = await values.keyPair(projectId);
      return { id, publicKey: Buffer.from(publicKey).toString('base64') };
    },

    async createSecret({ secretKey, ...given }, { projectId }) {
      const wanted = { id: newId(), projectId, secretKey: checkedKey(secretKey) };
      const made = await store.createSecret({ ...wanted, ...sealedOf(given), at: now() }, MAX);
      return { secret: toProto(written(made, secretKey)) };
    },

    async listSecrets(request, { projectId }) {
      const wanted = { projectId, ...periodOf(request) };
      return readPage(request, (page) => store.listSecrets({ ...wanted, ...page }), toProto);
    },

    async getSecret({ id }, { projectId }) {
      const row = await store.getSecret({ id: pathId('id', id), projectId });
      return { secret: toProto(orNotFound(row, 'Secret', id)) };
    },

    async updateSecret({ id, ...given }, { projectId }) {
      const change = { id: pathId('id', id), projectId, ...sealedOf(given), at: now() };
      const changed = orNotFound(await store.updateSecret(change, MAX), 'Secret', id);
      return { secret: toProto(written(changed)) };
    },

    async deleteSecret({ id }, { projectId }) {
      const isDeleted = await store.deleteSecret({ id: pathId('id', id), projectId });
      if (!isDeleted) throw notFound('Secret', id);
      return {};
    },

    async listFunctionSecrets(request, { projectId }) {
      const functionId = pathId('functionId', request.functionId);
      const wanted = { functionId, projectId, ...periodOf(request) };
      orNotFound(await store.getFunction({ id: functionId, projectId }), 'Function', functionId);
      return readPage(
        request,
        (page) => store.listFunctionSecrets({ ...wanted, ...page }),
        toProto,
      );
    },

    async attachSecret(request, { projectId }) {
      const wanted = { ...idsOf(request), projectId };
      switch (await store.attachSecret(wanted, ATTACHED_MAX)) {
        case 'attached':
          return {};
        case 'no-function':
          throw notFound('Function', wanted.functionId);
        case 'no-secret':
          throw notFound('Secret', wanted.secretId);
        case 'too-many':
          throw tooMany(`A function has at most ${ATTACHED_MAX} secrets. Detach one first.`, {
            max: ATTACHED_MAX,
          });
      }
    },

    async detachSecret(request, { projectId }) {
      const wanted = { ...idsOf(request), projectId };
      if (!(await store.detachSecret(wanted))) throw notFound('Function', wanted.functionId);
      return {};
    },
  };
}

function idsOf(request: { functionId: string; secretId: string }) {
  return {
    functionId: pathId('functionId', request.functionId),
    secretId: pathId('secretId', request.secretId),
  };
}

function periodOf({ startAt, endAt }: Period) {
  return {
    startAt: startAt === undefined ? undefined : timeOf('startAt', startAt),
    endAt: endAt === undefined ? undefined : timeOf('endAt', endAt),
  };
}

function checkedKey(text: string): string {
  inRange('secretKey', text.length, KEY_LENGTH);
  if (KEY.test(text)) return text;
  throw invalidField('secretKey', 'must have letters, digits and underscores, and no digit first.');
}

/** The layout is checked; only a lease shows whether the value opens. */
function sealedOf({
  keypairId,
  sealedSecretValue,
}: {
  keypairId: string;
  sealedSecretValue: string;
}) {
  if (!isId(keypairId)) throw unknownKeyPair();
  const sealed = Buffer.from(sealedSecretValue, 'base64');
  if (sealed.toString('base64') !== sealedSecretValue) {
    throw invalidField('sealedSecretValue', 'must be standard base64.');
  }
  const bytes = { min: SEALED_MIN_BYTES, max: SEALED_MAX_BYTES, unit: ' bytes in base64' };
  inRange('sealedSecretValue', sealed.length, bytes);
  return { keyPairId: keypairId.toLowerCase(), sealed };
}

function written(change: WrittenSecret, secretKey = ''): SecretRow {
  switch (change.outcome) {
    case 'written':
      return change.secret;
    case 'unknown-key-pair':
      throw unknownKeyPair();
    case 'name-taken': {
      const message = `A secret named "${secretKey}" already exists.`;
      throw new Fault('SECRET_NAME_TAKEN', message, { secretKey });
    }
    case 'too-many':
      throw tooMany(`A project has at most ${SECRETS_MAX} secrets. Delete one first.`, {
        max: SECRETS_MAX,
      });
    case 'too-large': {
      const bytes = PROJECT_MAX_BYTES;
      throw tooMany(`The sealed values of a project have at most ${bytes} bytes together.`, {
        maxBytes: bytes,
      });
    }
  }
}

function unknownKeyPair(): Fault {
  return invalidField('keypairId', 'must be the `id` of GET /v1/secrets/keypair.');
}

function tooMany(message: string, facts: { max: number } | { maxBytes: number }): Fault {
  return new Fault('TOO_MANY_SECRETS', message, facts);
}

function toProto({ id, secretKey }: SecretRow): Secret {
  return { id, secretKey };
}
