/**
 * What an operator can set in core. Read once, refused with a sentence when wrong, printed at start
 * without secrets.
 */
import { resolve } from 'node:path';
import { ConfigError, choice, type Env, integer, list, text } from '../proto/common/env.ts';
import { type Level, LOG_LEVELS } from '../proto/common/log.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { DISABLE_AFTER_MS, type Rule } from './delivery/disable.ts';
import { RATE_PER_S } from './delivery/rate.ts';
import { CLOCK_SETTLE_MS } from './maintenance/clock.ts';
import { type KeptDays, keptDays } from './maintenance/retention-config.ts';
import { type QuotaLimits, quotaDefaults } from './projects/quotas.ts';

/** In characters: what a person would not guess and a machine cannot search. */
const API_KEY_MIN = 24;
const HOUR_MS = 3_600_000;

export type CoreConfig = KeptDays & {
  /** TABERN_DATA: absolute; made with mode 0700. Default ./tabern_data. */
  dataDir: string;
  /**
   * TABERN_DURABILITY: `full` (default) acknowledges what is on disk; `normal` may lose the last
   * moments with the power.
   */
  durability: 'full' | 'normal';
  /**
   * TABERN_LEASE_MS, 15,000: how long a silent runner keeps its work. Runners renew at a third of
   * it.
   */
  leaseMs: number;
  /** TABERN_SWEEP_MS, 1,000: how often lost leases are looked for. */
  sweepMs: number;
  /** TABERN_CLOCK_SETTLE_MS, 600,000: a machine's clock that differs so long is believed. */
  clockSettleMs: number;
  /** TABERN_CONCURRENCY, 25: sessions, and invocations, a new project may have at once. */
  concurrency: number;
  /** TABERN_QUEUE_MAX, 1,000: invocations of a project that may wait; past it 429. */
  queueMax: number;
  /** TABERN_EXTENSIONS_MAX, 100: extensions that a project may have. */
  extensionsMax: number;
  /** TABERN_CONTEXTS_MAX and TABERN_*_MIB: what a project may store, unless its operator says. */
  quotas: QuotaLimits;
  /** TABERN_LOG_LEVEL: info. */
  logLevel: Level;
  /** TABERN_API_KEY: of the default project; 24 or more printable characters. */
  apiKey: string | undefined;
  /** TABERN_WEBHOOK_ALLOW_CIDRS, empty: addresses that webhooks may name beside the public ones. */
  webhookAllowCidrs: readonly string[];
  /** TABERN_WEBHOOK_DISABLE_AFTER, 120 h, and TABERN_WEBHOOK_DISABLE_SILENCE, on. */
  webhookRule: Rule;
  /** TABERN_WEBHOOK_RATE, 50: deliveries a second of one webhook. */
  webhookRatePerS: number;
  /** TABERN_CRASH_AT, `name:n`: fault tests only. */
  crashAt: string | undefined;
};

/** Throws ConfigError for a variable that cannot be used. */
export function readCoreConfig(env: Env): CoreConfig {
  return {
    dataDir: resolve(text(env, 'TABERN_DATA') ?? 'tabern_data'),
    durability: choice(env, 'TABERN_DURABILITY', ['full', 'normal'], 'full'),
    leaseMs: integer(env, 'TABERN_LEASE_MS', { default: 15_000, min: 1_000, max: 300_000 }),
    sweepMs: integer(env, 'TABERN_SWEEP_MS', { default: 1_000, min: 50, max: 60_000 }),
    clockSettleMs: integer(env, 'TABERN_CLOCK_SETTLE_MS', {
      default: CLOCK_SETTLE_MS,
      min: 1_000,
      max: 3_600_000,
    }),
    concurrency: integer(env, 'TABERN_CONCURRENCY', { default: 25, min: 1, max: 10_000 }),
    queueMax: integer(env, 'TABERN_QUEUE_MAX', { default: 1_000, min: 1, max: 1_000_000 }),
    extensionsMax: integer(env, 'TABERN_EXTENSIONS_MAX', { default: 100, min: 1, max: 10_000 }),
    quotas: quotaDefaults(env),
    logLevel: choice(env, 'TABERN_LOG_LEVEL', LOG_LEVELS, 'info'),
    apiKey: presetKey(env),
    webhookAllowCidrs: cidrs(env, 'TABERN_WEBHOOK_ALLOW_CIDRS'),
    webhookRule: webhookRule(env),
    webhookRatePerS: integer(env, 'TABERN_WEBHOOK_RATE', {
      default: RATE_PER_S,
      min: 1,
      max: 1_000,
    }),
    ...keptDays(env),
    crashAt: crashAt(env),
  };
}

/** The configuration as it may be printed. */
export function printable(config: CoreConfig): Record<string, unknown> {
  return { ...config, apiKey: config.apiKey === undefined ? undefined : '(set)' };
}

function presetKey(env: Env): string | undefined {
  const key = text(env, 'TABERN_API_KEY');
  if (key === undefined) return undefined;
  if (key.length < API_KEY_MIN) {
    throw new ConfigError(`TABERN_API_KEY must have at least ${API_KEY_MIN} characters`);
  }
  // It travels in a header: other characters could never be sent.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ConfigError('TABERN_API_KEY must be printable ASCII without spaces');
  }
  return key;
}

/** Up to a year: past it nobody would notice. */
function webhookRule(env: Env): Rule {
  const hours = integer(env, 'TABERN_WEBHOOK_DISABLE_AFTER', {
    default: DISABLE_AFTER_MS / HOUR_MS,
    min: 1,
    max: 8_760,
  });
  const silence = choice(env, 'TABERN_WEBHOOK_DISABLE_SILENCE', ['on', 'off'], 'on') === 'on';
  return { disableAfterMs: hours * HOUR_MS, silence };
}

function crashAt(env: Env): string | undefined {
  const point = text(env, 'TABERN_CRASH_AT');
  if (point === undefined) return undefined;
  if (env['NODE_ENV'] === 'production') {
    throw new ConfigError('TABERN_CRASH_AT is for fault tests; unset it in production');
  }
  if (!/^[a-z-]+:[1-9]\d*$/.test(point)) {
    throw new ConfigError('TABERN_CRASH_AT must look like before-commit:3');
  }
  return point;
}

function cidrs(env: Env, name: string): string[] {
  const blocks = list(env, name);
  try {
    cidrList(blocks);
  } catch (cause) {
    throw new ConfigError(`${name}: ${(cause as Error).message}`, { cause });
  }
  return blocks;
}
