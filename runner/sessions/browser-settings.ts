/**
 * What a session's creator asked of its browser, done: the engine and what is fixed when it starts,
 * the size of pages, their domains, the ways that connections leave. What cannot be had on one's
 * own machine is a warning in the session's log, never a refusal. Source: proto/spec/sessions.md 1.
 */

import { BrowserSettings, CreateSessionRequest } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import type { Upstream } from '../../proto/network/session-proxies.ts';
import { keepToDomains } from '../browser/cdp/allowed-domains.ts';
import { openPages } from '../browser/cdp/pages.ts';
import { setViewport, type Viewport } from '../browser/cdp/viewport.ts';
import { WINDOW } from '../browser/flags.ts';
import type { Chrome } from '../browser/launch.ts';
import type { TakeOptions } from '../browser/pool.ts';
import type { Config } from '../config.ts';
import { type Filters, openFilters } from '../jail/egress/ad-filters.ts';
import { openPatterns, type Patterns } from '../jail/egress/patterns.ts';
import { planOf } from '../jail/egress/session-routes.ts';
import type { OpenComponent } from './session.ts';

/** The JSON of CreateSessionRequest (sessions.proto), as core has validated it. */
export type SessionParams = Partial<Omit<CreateSessionRequest, 'browserSettings'>> & {
  /** Members of the request that the contract does not have. */
  ignoredMembers?: unknown;
  browserSettings?: Partial<Omit<BrowserSettings, 'engine' | 'viewport'>> & {
    engine?: TakeOptions['engine'];
    viewport?: Viewport;
  };
};

/** What this runner has for sessions. */
export type SettingsDeps = {
  /** The operator's proxy. */
  proxy: Upstream | undefined;
  filters: Filters;
  patterns: Patterns;
};

export function settingsDeps({ proxy, adLists }: Pick<Config, 'proxy' | 'adLists'>): SettingsDeps {
  return { proxy, filters: openFilters({ lists: adLists }), patterns: openPatterns() };
}

/** Ours: names for a person to read. */
const UNKNOWN_MAX = 20;
/** Members of a session's settings. */
const KNOWN_ABOVE = new Set([...Object.keys(CreateSessionRequest.create()), 'ignoredMembers']);
/** Members of browserSettings. */
const KNOWN = new Set(Object.keys(BrowserSettings.create()));

export type Settings = { wanted: TakeOptions; open: OpenComponent };

/** `usual`: the engine where none is asked for. */
export function sessionSettings(
  params: SessionParams,
  usual: TakeOptions['engine'],
  { proxy, filters, patterns, warn }: SettingsDeps & { warn: (message: string) => void },
): Settings {
  const { browserSettings = {}, proxies } = params;
  const {
    engine = usual,
    ignoreCertificateErrors,
    viewport,
    allowedDomains = [],
  } = browserSettings;
  const plan = planOf(proxies, proxy, patterns.ofSession());
  const warnings = [...plan.warnings, ...cannot(browserSettings), ...unknown(params)];
  for (const warning of warnings) warn(warning);

  async function block({ egress }: Chrome): Promise<void> {
    try {
      egress.steer({ isBlocked: await filters.load() });
    } catch {
      warn('blockAds: the filter lists cannot be read (TABERN_AD_LISTS); nothing is blocked');
    }
  }

  return {
    wanted: {
      ...(engine === undefined ? {} : { engine }),
      ...(ignoreCertificateErrors === true ? { ignoreCertificateErrors } : {}),
    },
    async open(chrome) {
      if (plan.routes.length > 0) chrome.egress.steer({ routes: plan.routes });
      if (browserSettings.blockAds === true) await block(chrome);
      if (viewport !== undefined) {
        await setViewport(chrome, await openPages(chrome), { ...WINDOW, ...viewport });
      }
      if (allowedDomains.length > 0) await keepToDomains(await openPages(chrome), allowedDomains);
      return { close: async () => undefined };
    },
  };
}

/** Of a request, by the gateway; of a function's sessionConfig, as its author wrote it. */
function unknown(params: SessionParams): string[] {
  const { ignoredMembers, browserSettings = {} } = params;
  const dropped = Array.isArray(ignoredMembers) ? ignoredMembers.map(String) : [];
  const above = Object.keys(params).filter((name) => !KNOWN_ABOVE.has(name));
  const written = Object.keys(browserSettings).filter((name) => !KNOWN.has(name));
  const names = [
    ...[...dropped, ...above.map((name) => name.slice(0, 64))],
    ...written.map((name) => `browserSettings.${name.slice(0, 64)}`),
  ];
  return names.slice(0, UNKNOWN_MAX).map((name) => `${name}: is no setting of a session`);
}

/** What was asked for and needs something that this machine has not. */
function cannot(asked: NonNullable<SessionParams['browserSettings']>): string[] {
  const { verified, advancedStealth, solveCaptchas, os, fingerprint, extensionId } = asked;
  return [
    ...(verified === true || advancedStealth === true
      ? ['verified: no verified browser is set up here; an ordinary one is used']
      : []),
    ...(solveCaptchas === true
      ? ['solveCaptchas: no solver is set up here; captchas stay as they are']
      : []),
    ...(os !== undefined && os !== 'linux' ? [`os: there is no ${os} here; it is linux`] : []),
    ...(extensionId !== undefined && asked.engine === 'headless-shell'
      ? ['engine: extensions load in chromium alone; it is used']
      : []),
    ...(fingerprint !== undefined ? ['fingerprint: is not acted on'] : []),
  ];
}
