/**
 * What a function's sessionConfig and an invocation's sessionCreateParams may say, and how they
 * merge. Pure. Source: reference.md 1.2.1 and 1.5. Keys that are not known pass: the reference
 * accepts options it does not publish.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { SessionCreateParams } from '../proto/gen/tabern/v1/invocations.pb.ts';

export type SessionParams = Record<string, unknown>;

/** Never in a sessionConfig. Source: reference.md 1.5. */
const REFUSED_KEYS = [
  'keepAlive',
  'region',
  'playground',
  'scheduleMode',
  'solverServices',
  'projectId',
];
/** In seconds. */
const TIMEOUT = { min: 60, max: 900 };
/** In characters of JSON. */
const METADATA_LIMIT = 512;
/** In characters of JSON. Ours, as params: a list of sessions reads a thousand of them. */
const PARAMS_MAX = 64 << 10;

const flag = { type: 'boolean' };
const text = { type: 'string' };
const size = { type: 'integer', minimum: 1, maximum: 16_384 }; // Chrome's largest texture

const validate = new Ajv2020({ strict: false }).compile({
  type: 'object',
  properties: {
    extensionId: text,
    timeout: { type: 'integer', minimum: TIMEOUT.min, maximum: TIMEOUT.max },
    proxies: { anyOf: [flag, { type: 'array', items: { type: 'object' } }] },
    userMetadata: { type: 'object' },
    browserSettings: {
      type: 'object',
      properties: {
        context: {
          type: 'object',
          required: ['id'],
          properties: { id: text, persist: flag },
        },
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
        allowedDomains: { type: 'array', items: text },
        ignoreCertificateErrors: flag,
        extensionId: text,
        fingerprint: { type: 'object' },
      },
    },
  },
});

/** What is wrong, as a path and a sentence's end; undefined when nothing is. */
export function problemOf(params: unknown): { path: string; problem: string } | undefined {
  const refused = REFUSED_KEYS.find((key) => isPlain(params) && Object.hasOwn(params, key));
  if (refused) return { path: `.${refused}`, problem: 'is not accepted here.' };
  if (!validate(params)) {
    const [first] = validate.errors ?? [];
    const path = (first?.instancePath ?? '').replaceAll('/', '.');
    return { path, problem: `${first?.message ?? 'is not valid'}.` };
  }
  if (JSON.stringify(params).length > PARAMS_MAX) {
    return { path: '', problem: `must be at most ${PARAMS_MAX} characters of JSON.` };
  }
  const metadata = isPlain(params) ? params['userMetadata'] : undefined;
  if (metadata !== undefined && JSON.stringify(metadata).length >= METADATA_LIMIT) {
    return {
      path: '.userMetadata',
      problem: `must be less than ${METADATA_LIMIT} characters of JSON.`,
    };
  }
  return undefined;
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

/** The message as the JSON its sender wrote: what was not said is not there. */
export function plainParams(message: SessionCreateParams | undefined): SessionParams {
  return message ? said({ ...message }) : {};
}

/** An empty list is what a message has when nothing was said. */
function said(value: SessionParams): SessionParams {
  const entries = Object.entries(value)
    .filter(([, one]) => one !== undefined && !(Array.isArray(one) && one.length === 0))
    .map(([key, one]) => [key, isPlain(one) ? said(one) : one]);
  return Object.fromEntries(entries);
}

function isPlain(value: unknown): value is SessionParams {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
