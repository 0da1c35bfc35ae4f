/**
 * Logins of the console: what the cookie of a browser stands for. created -> used ... -> ended: by
 * a logout, 12 hours after its last use, or with its API key. A login is stored as the hash of its
 * text. One-time codes are in memory, that of each core: a restart ends them, and they last a
 * minute. An operator login is made by a code of the operator token only, and ends when that token
 * changes.
 */
import { randomBytes } from 'node:crypto';
import type {
  ConsoleLogin,
  ConsoleLoginServiceService,
} from '../../proto/gen/tabern/v1/console_logins.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { type Authenticate, hashOf, type LoginCaller, type Tokens } from '../api/authentication.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { openRate } from '../common/rate-limit.ts';
import type { ConsoleLoginRow } from '../store/types/logins.ts';
import type { Store } from '../store/types.ts';

/** Since the last use. Ours: a working day. */
const LOGIN_MS = 12 * 3_600_000;
/** A use is stored once in it. */
const USE_MS = 60_000;
/** Of a project, and of the operator. Ours: far more than its users have browsers. */
const LOGINS_MAX = 1_000;
const CODE_MS = 60_000;
/** Ours: a command of the operator makes each. */
const CODES_MAX = 1_000;
/** Attempts of one client's address. */
const ATTEMPTS = { limit: 10, periodMs: 60_000, what: 'login attempts' };
/** Of the stored hash, so that it is of no use elsewhere. */
const OPERATOR_PLACE = 'operator login of the console';
/** Longer texts are none of ours. */
const TEXT_MAX_CHARS = 4_096;

type LoginStore = Pick<
  Store,
  | 'addConsoleLogin'
  | 'findConsoleLogin'
  | 'extendConsoleLogin'
  | 'removeConsoleLogin'
  | 'sendToCores'
  | 'onCoreMessage'
>;
type Clocks = {
  now: () => number;
  /** Monotonic. */
  steady: () => number;
};

/** Whom a new login is for: a project, or the operator. */
type Owner =
  | { kind: 'project'; projectId: string; keyId?: string | undefined }
  | { kind: 'operator' };

export type ConsoleLogins = ReturnType<typeof openConsoleLogins>;

export function openConsoleLogins(
  options: { store: LoginStore; tokens: Pick<Tokens, 'operator'> } & Clocks,
) {
  const { store, tokens, now, steady } = options;
  const codes = openCodes(store, steady);
  const operatorHash = hashOf(`${OPERATOR_PLACE}\n${tokens.operator}`);

  async function find(text: string, { use }: { use: boolean }): Promise<ConsoleLoginRow> {
    const [hash, at] = [hashOf(text), now()];
    const row = await store.findConsoleLogin({ hash, operatorHash, at });
    if (row === undefined) throw invalidKey();
    if (!use || row.expiresAt - at > LOGIN_MS - USE_MS) return row;
    const expiresAt = at + LOGIN_MS;
    await store.extendConsoleLogin({ hash, expiresAt });
    return { ...row, expiresAt };
  }

  return {
    codes,
    find,
    /** Returns its text. */
    async add(owner: Owner) {
      const text = randomBytes(32).toString('base64url');
      const at = now();
      const own =
        owner.kind === 'operator'
          ? { projectId: null, operatorHash, keyId: null }
          : { projectId: owner.projectId, operatorHash: null, keyId: owner.keyId ?? null };
      const login = { hash: hashOf(text), ...own };
      const times = { at, expiresAt: at + LOGIN_MS };
      await store.addConsoleLogin({ ...login, ...times, max: LOGINS_MAX });
      return text;
    },
    remove: (text: string) => store.removeConsoleLogin(hashOf(text)),
    /**
     * The caller of a request with that login, which counts as a use. Throws API_KEY_INVALID. Not
     * cached: a logout and a revocation take effect at once.
     */
    async caller(text: string): Promise<LoginCaller> {
      const { projectId, keyId: id } = await find(text, { use: true });
      if (projectId === null) return { kind: 'operator', login: { kind: 'operator' } };
      const keyId = id ?? undefined;
      const login = { kind: keyId === undefined ? 'code' : 'key', keyId } as const;
      return { kind: 'project', projectId, keyId, login };
    },
  };
}

/** A code that was made, or used up when it has no owner. */
type CodeMessage = { name: string; owner?: Owner };

/** One-time codes by their hashes. */
function openCodes(cores: Pick<LoginStore, 'sendToCores' | 'onCoreMessage'>, steady: () => number) {
  const known = new Map<string, { owner: Owner; until: number }>();
  const nameOf = (code: string) => hashOf(code).toString('base64');
  const send = (message: CodeMessage) => cores.sendToCores('code', JSON.stringify(message));
  const keep = (name: string, owner: Owner): void => {
    const at = steady();
    for (const [other, { until }] of known) {
      if (until <= at || known.size >= CODES_MAX) known.delete(other);
    }
    known.set(name, { owner, until: at + CODE_MS });
  };
  cores.onCoreMessage('code', (content) => {
    const { name, owner } = JSON.parse(content) as CodeMessage;
    if (owner === undefined) known.delete(name);
    else keep(name, owner);
  });
  return {
    /** A code, and for how long it is valid. */
    add(owner: Owner): { code: string; lifeMs: number } {
      const code = randomBytes(32).toString('base64url');
      const name = nameOf(code);
      keep(name, owner);
      send({ name, owner });
      return { code, lifeMs: CODE_MS };
    },
    /** The owner of a valid code, which is used up. */
    take(code: string): Owner | undefined {
      const name = nameOf(code);
      const found = known.get(name);
      if (found === undefined) return undefined;
      known.delete(name);
      send({ name });
      return steady() < found.until ? found.owner : undefined;
    },
  };
}

export function consoleLoginService(
  options: { logins: ConsoleLogins; authenticate: Authenticate } & Pick<Clocks, 'steady'>,
): Service<typeof ConsoleLoginServiceService, MachineCaller> {
  const { logins, authenticate, steady } = options;
  const attempts = openRate({ ...ATTEMPTS, now: steady });

  /** Compares hashes only, so the duration of a refusal tells nothing about the text. */
  async function ownerOf(
    credential: { $case: 'apiKey' | 'code'; value: string } | undefined,
  ): Promise<Owner> {
    if (credential === undefined) throw invalidField('credential', 'must be given.');
    const { $case, value } = credential;
    if (value === '' || value.length > TEXT_MAX_CHARS) throw invalidKey();
    if ($case === 'code') {
      const owner = logins.codes.take(value);
      if (owner !== undefined) return owner;
      const problem = 'The link has expired or was used already.';
      throw new Fault('API_KEY_INVALID', `${problem} Run \`tabern console\` again.`);
    }
    const caller = await authenticate({ 'x-svc-api-key': value });
    if (caller.kind !== 'project') throw invalidKey();
    return caller;
  }

  return {
    async createConsoleLogin({ credential, client }) {
      attempts.take(client);
      const text = await logins.add(await ownerOf(credential));
      return { text, login: toProto(await logins.find(text, { use: false })) };
    },
    async getConsoleLogin({ text, use }) {
      return { login: toProto(await logins.find(text, { use })) };
    },
    async deleteConsoleLogin({ text }) {
      await logins.remove(text);
      return {};
    },
  };
}

function invalidKey(): Fault {
  return new Fault('API_KEY_INVALID', 'Invalid API key.');
}

function toProto({ projectId, projectName, keyId, expiresAt }: ConsoleLoginRow): ConsoleLogin {
  return {
    projectId: projectId ?? '',
    projectName: projectName ?? '',
    keyId: keyId ?? undefined,
    expiresAt: new Date(expiresAt),
    isOperator: projectId === null,
  };
}
