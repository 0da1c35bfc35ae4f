/**
 * What a session may be created with, and what a function's sessionConfig and an invocation's
 * sessionCreateParams may say, and how these merge. Pure. Source: proto/spec/sessions.md 1,
 * proto/spec/functions.md 3. Keys that are not known pass: clients send options of their own.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { INVOCATION_TIMEOUT_MAX_S, INVOCATION_TIMEOUT_MIN_S } from '../../proto/common/limits.ts';
import type { SessionCreateParams } from '../../proto/gen/tabern/v1/invocations.pb.ts';
import type {
  BrowserSettings,
  CreateSessionRequest,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { PATTERN_MAX_CHARS, patternProblem } from '../../proto/network/patterns.ts';
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
];
/** In seconds. */
const TIMEOUT = { min: INVOCATION_TIMEOUT_MIN_S, max: INVOCATION_TIMEOUT_MAX_S };
/** In seconds, of a session that a user starts. */
const SESSION_TIMEOUT = { min: 60, max: 21_600 };
const REGIONS = ['us-west-2', 'us-east-1', 'eu-central-1', 'ap-southeast-1'];
/** In characters of JSON. */
const METADATA_LIMIT = 512;
/** In characters of JSON. Ours, as params: a runner may get those of 64 sessions in one answer. */
const PARAMS_MAX = 64 << 10;
/** Ours: each connection of a session walks them in turn. */
const PROXIES_MAX = 20;

const flag = { type: 'boolean' };
const text = { type: 'string' };
const id = { type: 'string', minLength: 1, maxLength: 128 };
const size = { type: 'integer', minimum: 1, maximum: 16_384 }; // Chrome's largest texture
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

/** Ajv stops at the first problem, so a pattern is looked at after its length. */
const domainPattern = {
  ...named,
  maxLength: PATTERN_MAX_CHARS,
  format: 'pattern',
};

const proxy = {
  type: 'object',
  required: ['type'],
  properties: { type: { enum: Object.keys(PROXIES) }, domainPattern },
  allOf: Object.entries(PROXIES).map(([type, rules]) => ({
    if: { required: ['type'], properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON schema.
    then: rules,
  })),
};

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
    allowedDomains: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 253 } },
    ignoreCertificateErrors: flag,
    extensionId: id,
    fingerprint: { type: 'object' },
    engine: { enum: ['chromium', 'headless-shell'] },
  } satisfies Record<keyof BrowserSettings, object>,
};

/** What a text must be, and what throws at any other. */
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
  certificate: {
    parse() {
      throw new TypeError('certificates cannot be uploaded here, so there is none');
    },
    problem: 'must be a certificate of this project.',
  },
};

const ajv = new Ajv2020({ strict: false });
for (const [name, { parse }] of Object.entries(FORMATS)) {
  ajv.addFormat(name, (text: string) => isAccepted(text, parse));
}
const rulesOf = ({ min, max }: typeof TIMEOUT, more: object = {}) =>
  ajv.compile({
    type: 'object',
    properties: {
      extensionId: id,
      timeout: { type: 'integer', minimum: min, maximum: max },
      proxies: { type: ['boolean', 'array'], maxItems: PROXIES_MAX, items: proxy },
      userMetadata: { type: 'object' },
      browserSettings,
      ...more,
    },
  });
const ofInvocation = rulesOf(TIMEOUT);
const ofSession = rulesOf(SESSION_TIMEOUT, {
  keepAlive: flag,
  region: { enum: REGIONS },
  proxySettings: {
    type: 'object',
    properties: {
      caCertificates: { type: 'array', items: { type: 'string', format: 'certificate' } },
    },
  },
});

/** What is wrong, as a path and a sentence's end. */
export type Problem = { path: string; problem: string };

/** Of a sessionConfig or sessionCreateParams; undefined when nothing is wrong. */
export function problemOf(params: unknown): Problem | undefined {
  const refused = REFUSED_KEYS.find((key) => isPlain(params) && Object.hasOwn(params, key));
  if (refused) return { path: `.${refused}`, problem: 'is not accepted here.' };
  return firstProblem(ofInvocation, params);
}

/** Of what a session is created with. */
export function sessionProblem(params: SessionParams): Problem | undefined {
  return firstProblem(ofSession, params);
}

/** Sizes first: a check may cost more than its text. */
function firstProblem(validate: ValidateFunction, params: unknown): Problem | undefined {
  if (JSON.stringify(params).length > PARAMS_MAX) {
    return { path: '', problem: `must be at most ${PARAMS_MAX} characters of JSON.` };
  }
  if (!validate(params)) return problemFrom(validate.errors?.[0]);
  const metadata = isPlain(params) ? params['userMetadata'] : undefined;
  if (metadata !== undefined && JSON.stringify(metadata).length >= METADATA_LIMIT) {
    return {
      path: '.userMetadata',
      problem: `must be less than ${METADATA_LIMIT} characters of JSON.`,
    };
  }
  return undefined;
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
  if (keyword === 'format') return { path, problem: FORMATS[params['format']]?.problem ?? message };
  return { path, problem: `${message}.` };
}

function isAccepted(text: string, parse: (text: string) => unknown): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false; // the caller is told what it must be
  }
}

/** `over` laid upon `base`: objects merge key by key, anything else replaces. */
export function merged(base: SessionParams, over: SessionParams): SessionParams {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (key === '__proto__') continue;
    const below = result[key];
    result[key] = isPlain(below) && isPlain(value) ? merged(below, value) : value;
  }
  return result;
}

/** The message as the JSON its sender wrote: what was not said, or is null, is not there. */
export function plainParams(
  message: SessionCreateParams | CreateSessionRequest | undefined,
): SessionParams {
  return message ? said({ ...message }) : {};
}

/** A function's sessionConfig likewise; what is no object stays as it is. */
export function plainConfig(config: unknown): unknown {
  return isPlain(config) ? said(config) : config;
}

/** Objects of their sender's own, which stay as they are. */
const VERBATIM = ['userMetadata', 'fingerprint'];

/** An empty list is what a message has when nothing was said; null says nothing either. */
function said(value: SessionParams): SessionParams {
  const entries = Object.entries(value)
    .filter(([, one]) => one !== undefined && one !== null)
    .filter(([, one]) => !(Array.isArray(one) && one.length === 0))
    .map(([key, one]) => [key, VERBATIM.includes(key) ? one : below(one)]);
  return Object.fromEntries(entries);
}

function below(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(below);
  return isPlain(value) ? said(value) : value;
}

function isPlain(value: unknown): value is SessionParams {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
