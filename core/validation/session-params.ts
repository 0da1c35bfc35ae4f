/**
 * Checks of the params of a session, of a function's sessionConfig and of an invocation's
 * sessionCreateParams, and their merge. Pure. Source: proto/spec/sessions.md 1,
 * proto/spec/functions.md 3. Unknown keys pass: clients send options of their own.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { INVOCATION_TIMEOUT_MAX_S, INVOCATION_TIMEOUT_MIN_S } from '../../proto/common/limits.ts';
import type { SessionCreateParams } from '../../proto/gen/tabern/v1/invocations.pb.ts';
import type {
  BrowserSettings,
  CreateSessionRequest,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { hostOf } from '../../proto/network/hosts.ts';
import { PATTERN_MAX_CHARS, patternOf, patternProblem } from '../../proto/network/patterns.ts';
import { upstreamOf } from '../../proto/network/session-proxies.ts';

export type SessionParams = Record<string, unknown>;

/** Never in a sessionConfig. Source: proto/spec/functions.md 3. */
const REFUSED_KEYS = [
  'keepAlive',
  'region',
  'playground',
  'scheduleMode',
  'solverServices',
  'projectId',
  'labels',
];
/** In seconds. */
const TIMEOUT = { min: INVOCATION_TIMEOUT_MIN_S, max: INVOCATION_TIMEOUT_MAX_S };
/** In seconds, of a session that a user starts. */
const SESSION_TIMEOUT = { min: 60, max: 21_600 };
const REGIONS = ['us-west-2', 'us-east-1', 'eu-central-1', 'ap-southeast-1'];
/** In characters of JSON. */
const METADATA_LIMIT = 512;
/** In characters of JSON. Ours, as for params: one answer may have those of 64 sessions. */
const PARAMS_MAX = 64 << 10;
/** Source: sessions.proto. */
export const EXTENSIONS_MAX = 5;
const CERTIFICATES_MAX = 10;
/** Ours: each connection of a session is matched against them in turn. */
const PROXIES_MAX = 20;

const flag = { type: 'boolean' };
const text = { type: 'string' };
const id = { type: 'string', minLength: 1, maxLength: 128 };
const size = { type: 'integer', minimum: 1, maximum: 16_384 }; // Chrome's largest texture
const host = { type: 'string', minLength: 1, maxLength: 253 };
const named = { type: 'string', minLength: 1, maxLength: 2_048 };

/** By type. Source: proto/spec/sessions.md 1. */
const PROXIES = {
  browserbase: {
    properties: {
      geolocation: {
        type: 'object',
        required: ['country'],
        properties: {
          country: { type: 'string', minLength: 2, maxLength: 2 },
          state: { type: 'string', minLength: 2, maxLength: 2 },
          city: { type: 'string', minLength: 1, maxLength: 128 },
        },
      },
    },
  },
  external: {
    required: ['server'],
    properties: { server: { ...named, format: 'proxy' }, username: text, password: text },
  },
  none: {},
};

/** Ajv stops at the first problem, so the pattern is parsed after its length was checked. */
const domainPattern = { ...named, maxLength: PATTERN_MAX_CHARS, format: 'pattern' };

const proxy = {
  type: 'object',
  required: ['type'],
  properties: { type: { enum: Object.keys(PROXIES) }, domainPattern },
  allOf: Object.entries(PROXIES).map(([type, rules]) => ({
    if: { required: ['type'], properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON schema.
    then: rules,
  })),
};

/** Hosts of a network rule. The number is ours. */
const hosts = { type: 'array', maxItems: 500, items: { ...host, format: 'host' } };

const browserSettings = {
  type: 'object',
  properties: {
    context: { type: 'object', required: ['id'], properties: { id, persist: flag } },
    viewport: { type: 'object', properties: { width: size, height: size } },
    blockAds: flag,
    solveCaptchas: flag,
    recordSession: flag,
    logSession: flag,
    advancedStealth: flag,
    verified: flag,
    captchaImageSelector: text,
    captchaInputSelector: text,
    os: { enum: ['windows', 'mac', 'linux', 'mobile', 'tablet'] },
    allowedDomains: { type: 'array', items: host },
    ignoreCertificateErrors: flag,
    extensionId: id,
    extensions: { type: 'array', maxItems: EXTENSIONS_MAX, items: id },
    // small and medium are names of the published interface
    size: { enum: ['regular', 'large', 'xlarge', 'small', 'medium'] },
    enablePdfViewer: flag,
    enableNativeSelectPolyfill: flag,
    fingerprint: { type: 'object' },
    engine: { enum: ['chromium', 'headless-shell'] },
    network: {
      type: 'object',
      properties: { allow: hosts, deny: hosts },
      additionalProperties: false, // a misspelt rule would restrict nothing
    },
  } satisfies Record<keyof BrowserSettings, object>,
};

/** Formats of texts: a parser that throws for other text, and the problem to report. */
const FORMATS: Record<string, { parse: (text: string) => unknown; problem: string }> = {
  pattern: {
    parse(text) {
      const problem = patternProblem(text);
      if (problem) throw new TypeError(problem);
    },
    problem: 'must be a smaller pattern: its repeat counts multiply.',
  },
  proxy: {
    parse: (server) => upstreamOf(server, { isManaged: false }),
    problem: 'must be the address of an http, https or socks5 proxy.',
  },
  host: {
    parse: hostOf,
    problem: 'must be a host: a name, an address or *, without scheme, port or path.',
  },
};

// the rules are ours: checking them would take half of the compilation
const ajv = new Ajv2020({ strict: false, meta: false, validateSchema: false });
for (const [name, { parse }] of Object.entries(FORMATS)) {
  ajv.addFormat(name, (text: string) => isAccepted(text, parse));
}
/** Compiled at the first use: each start would take 50 ms of CPU for each of the two. */
function rulesOf({ min, max }: typeof TIMEOUT, more: object = {}): () => ValidateFunction {
  let compiled: ValidateFunction | undefined;
  const schema = {
    type: 'object',
    properties: {
      extensionId: id,
      timeout: { type: 'integer', minimum: min, maximum: max },
      proxies: { type: ['boolean', 'array'], maxItems: PROXIES_MAX, items: proxy },
      userMetadata: { type: 'object' },
      browserSettings,
      proxySettings: {
        type: 'object',
        properties: { caCertificates: { type: 'array', maxItems: CERTIFICATES_MAX, items: id } },
      },
      ...more,
    },
  };
  return () => (compiled ??= ajv.compile(schema));
}
const ofInvocation = rulesOf(TIMEOUT);
const ofSession = rulesOf(SESSION_TIMEOUT, {
  keepAlive: flag,
  region: { enum: REGIONS },
});

/** A path, and the end of a sentence about it. */
export type Problem = { path: string; problem: string };

/** Of a sessionConfig or sessionCreateParams; undefined for valid params. */
export function problemOf(params: unknown): Problem | undefined {
  const refused = REFUSED_KEYS.find((key) => isPlain(params) && Object.hasOwn(params, key));
  if (refused) return { path: `.${refused}`, problem: 'is not accepted here.' };
  return firstProblem(ofInvocation(), params);
}

/** Of the params of a session that a user creates. */
export function sessionProblem(params: SessionParams): Problem | undefined {
  return firstProblem(ofSession(), params);
}

/** The escape in JSON of U+0000, which PostgreSQL does not store in a text. */
const ZERO = /(?:^|[^\\])(?:\\\\)*\\u0000/;

/** The size is checked first: other checks may be expensive. */
function firstProblem(validate: ValidateFunction, params: unknown): Problem | undefined {
  if (JSON.stringify(params).length > PARAMS_MAX) {
    return { path: '', problem: `must be at most ${PARAMS_MAX} characters of JSON.` };
  }
  if (!validate(params)) return problemFrom(validate.errors?.[0]);
  const metadata = isPlain(params) ? params['userMetadata'] : undefined;
  if (metadata !== undefined && JSON.stringify(metadata).length >= METADATA_LIMIT) {
    const problem = `must be less than ${METADATA_LIMIT} characters of JSON.`;
    return { path: '.userMetadata', problem };
  }
  if (metadata !== undefined && ZERO.test(JSON.stringify(metadata))) {
    return { path: '.userMetadata', problem: 'must not contain U+0000.' };
  }
  return engineProblem(params as SessionParams);
}

/** What chromium alone can do, with an engine that is another one. */
function engineProblem(params: SessionParams): Problem | undefined {
  const { browserSettings = {} } = params as {
    browserSettings?: { engine?: string; enablePdfViewer?: boolean };
  };
  const { engine, enablePdfViewer } = browserSettings;
  if (engine !== 'headless-shell' || enablePdfViewer !== true) return undefined;
  const problem = 'needs the engine chromium: headless-shell has no such setting.';
  return { path: '.browserSettings.enablePdfViewer', problem };
}

function problemFrom(error: ErrorObject | undefined): Problem {
  if (!error) return { path: '', problem: 'is not valid.' };
  const { keyword, message = 'is not valid', params } = error;
  const path = error.instancePath.replace(/\/(\d+)(?=\/|$)/g, '[$1]').replaceAll('/', '.');
  if (keyword === 'enum') {
    return { path, problem: `must be one of ${params['allowedValues'].join(', ')}.` };
  }
  if (keyword === 'type') {
    return { path, problem: `must be ${String(params['type']).replaceAll(',', ' or ')}.` };
  }
  if (keyword === 'additionalProperties') {
    const problem = 'is not a known field.';
    return { path: `${path}.${String(params['additionalProperty']).slice(0, 64)}`, problem };
  }
  if (keyword === 'format') return { path, problem: FORMATS[params['format']]?.problem ?? message };
  return { path, problem: `${message}.` };
}

function isAccepted(text: string, parse: (text: string) => unknown): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false; // FORMATS has the problem to report
  }
}

/** Whether the params have patterns to compile. */
export function hasPatterns(params: SessionParams): boolean {
  return patternsOf(params).length > 0;
}

/**
 * Of valid params. Compiles the patterns of proxies, which takes milliseconds each; a tenant
 * chooses how many. Therefore only the thread of core/validation/validator.ts calls it.
 */
export function patternsProblem(params: SessionParams): Problem | undefined {
  const wrong = patternsOf(params).find(({ pattern }) => !isAccepted(pattern, patternOf));
  if (!wrong) return undefined;
  const path = `.proxies[${wrong.index}].domainPattern`;
  return { path, problem: 'must be a regular expression of RE2.' };
}

function patternsOf({ proxies }: SessionParams): { pattern: string; index: number }[] {
  if (!Array.isArray(proxies)) return [];
  return proxies
    .map(({ domainPattern: pattern }: { domainPattern?: unknown }, index) => ({ pattern, index }))
    .filter((one): one is { pattern: string; index: number } => typeof one.pattern === 'string');
}

/** `base` overridden by `over`: objects merge key by key, other values replace. */
export function merged(base: SessionParams, over: SessionParams): SessionParams {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (key === '__proto__') continue;
    const below = result[key];
    result[key] = isPlain(below) && isPlain(value) ? merged(below, value) : value;
  }
  return result;
}

/** The message as the JSON of its sender, without absent and null members. */
export function plainParams(
  message: SessionCreateParams | Omit<CreateSessionRequest, 'labels'> | undefined,
): SessionParams {
  return message ? present({ ...message }) : {};
}

/** A function's sessionConfig likewise; a value that is not an object is returned unchanged. */
export function plainConfig(config: unknown): unknown {
  return isPlain(config) ? present(config) : config;
}

/** Objects of the sender's own, which are not changed. */
const VERBATIM = ['userMetadata', 'fingerprint'];

/** Without absent members. A message has an empty list for an absent one. */
function present(value: SessionParams): SessionParams {
  const entries = Object.entries(value)
    .filter(([, one]) => one !== undefined && one !== null)
    .filter(([, one]) => !(Array.isArray(one) && one.length === 0))
    .map(([key, one]) => [key, VERBATIM.includes(key) ? one : below(one)]);
  return Object.fromEntries(entries);
}

function below(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(below);
  return isPlain(value) ? present(value) : value;
}

function isPlain(value: unknown): value is SessionParams {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
