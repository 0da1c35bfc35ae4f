/**
 * Core's settings: read once, refused with an explanation when invalid, printed at start without
 * secrets.
 */
import { ConfigError, type Env, text } from '../proto/common/env.ts';
import { readSettings } from '../proto/common/settings/read.ts';
import type { Rule } from './delivery/disable.ts';
import type { QuotaLimits } from './projects/quotas.ts';

const HOUR_MS = 3_600_000;

export type CoreConfig = ReturnType<typeof readCoreConfig>;

/** Throws ConfigError for an invalid value. */
export function readCoreConfig(env: Env) {
  const settings = readSettings(env, 'core');
  const { data, contextsMax, contextMib, downloadMib, recordingMib, ...others } = settings;
  const { uploadMib, logMib, webhookAllowCidrs = [], webhookRate, ...more } = others;
  const { webhookDisableAfter: hours, webhookDisableSilence: silence, ...rest } = more;
  const sizes = { contextMib, downloadMib, recordingMib, uploadMib, logMib };
  const quotas: QuotaLimits = { contexts: contextsMax, ...sizes };
  const webhookRule: Rule = { disableAfterMs: hours * HOUR_MS, silence: silence === 'on' };
  return {
    ...rest,
    dataDir: data,
    /** Default quotas of a project. */
    quotas,
    /** Addresses that webhooks may use in addition to public ones. */
    webhookAllowCidrs,
    webhookRule,
    webhookRatePerS: webhookRate,
    crashAt: crashAt(env),
  };
}

/** The configuration without secrets. */
export function printable(config: CoreConfig): Record<string, unknown> {
  return { ...config, apiKey: config.apiKey === undefined ? undefined : '(set)' };
}

/** TABERN_CRASH_AT, `name:n`: for fault tests only. */
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
