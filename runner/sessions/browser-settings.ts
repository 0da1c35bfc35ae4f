/**
 * Applies a session's settings to its browser: the engine and its start options, the size of
 * pages, their allowed domains, the proxies. A setting that this machine cannot provide is a
 * warning in the session's log, never a refusal. Source: proto/spec/sessions.md 1.
 */

import {
  BrowserSettings,
  type BrowserSettings_Network,
  CreateSessionRequest,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { hostList } from '../../proto/network/hosts.ts';
import type { Upstream } from '../../proto/network/session-proxies.ts';
import { keepToDomains } from '../browser/cdp/allowed-domains.ts';
import { drawSelects } from '../browser/cdp/drawn-selects.ts';
import { openPages } from '../browser/cdp/pages.ts';
import { setViewport, type Viewport } from '../browser/cdp/viewport.ts';
import { WINDOW } from '../browser/flags.ts';
import type { Chrome } from '../browser/launch.ts';
import type { TakeOptions } from '../browser/pool.ts';
import type { Config } from '../config.ts';
import { type Filters, openFilters } from '../jail/egress/ad-filters.ts';
import { openPatterns, type Patterns } from '../jail/egress/patterns.ts';
import { planOf } from '../jail/egress/routes.ts';
import type { OpenComponent } from './session.ts';

/** The JSON of CreateSessionRequest (sessions.proto), as core has validated it. */
export type SessionParams = Partial<Omit<CreateSessionRequest, 'browserSettings'>> & {
  /** Members of the request that the contract does not have. */
  ignoredMembers?: unknown;
  browserSettings?: Partial<Omit<BrowserSettings, 'engine' | 'viewport' | 'network'>> & {
    engine?: TakeOptions['engine'];
    viewport?: Viewport;
    network?: Partial<BrowserSettings_Network>;
  };
};

/** The resources of the runner that settings use. */
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

/** By `size`. Source: sessions.proto. */
const MEMORY_FACTORS: Readonly<Record<string, number>> = { large: 2, xlarge: 4 };

export type Settings = { wanted: TakeOptions; open: OpenComponent };

/** `usual`: the engine of sessions that name none. */
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
    network,
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
    // a spare is taken when all of these are undefined
    wanted: {
      engine,
      ignoreCertificateErrors: ignoreCertificateErrors || undefined,
      memoryFactor: MEMORY_FACTORS[browserSettings.size ?? ''],
    },
    async open(chrome) {
      if (plan.routes.length > 0) chrome.egress.steer({ routes: plan.routes });
      if (network !== undefined) chrome.egress.steer({ isAllowed: judgeOf(network) });
      if (browserSettings.blockAds === true) await block(chrome);
      if (viewport !== undefined) {
        await setViewport(chrome, await openPages(chrome), { ...WINDOW, ...viewport });
      }
      if (browserSettings.enableNativeSelectPolyfill === true) {
        await drawSelects(await openPages(chrome));
      }
      if (allowedDomains.length > 0) await keepToDomains(await openPages(chrome), allowedDomains);
      return {};
    },
  };
}

/** Whether a session may connect to a host. A denied host is refused also when it is allowed. */
function judgeOf(network: Partial<BrowserSettings_Network>): (hostname: string) => boolean {
  const { allow = [], deny = [] } = network;
  const isAllowed = hostList(allow.length > 0 ? allow : ['*']);
  const isDenied = hostList(deny);
  return (hostname) => isAllowed(hostname) && !isDenied(hostname);
}

/** Names of unknown members: of a request (found by the gateway), of a function's sessionConfig. */
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

/** Warnings of settings that this machine cannot provide. */
function cannot(settings: NonNullable<SessionParams['browserSettings']>): string[] {
  const { engine, verified, advancedStealth, solveCaptchas, os, fingerprint } = settings;
  const warnings: [boolean | undefined, string][] = [
    [
      verified || advancedStealth,
      'verified: no verified browser is set up here; an ordinary one is used',
    ],
    [solveCaptchas, 'solveCaptchas: no solver is set up here; captchas stay as they are'],
    [os !== undefined && os !== 'linux', `os: there is no ${os} here; it is linux`],
    [
      engine === 'headless-shell' &&
        (settings.extensionId !== undefined || (settings.extensions ?? []).length > 0),
      'engine: extensions load in chromium alone; it is used',
    ],
    [fingerprint !== undefined, 'fingerprint: is not acted on'],
  ];
  return warnings.flatMap(([isDue, warning]) => (isDue ? [warning] : []));
}
