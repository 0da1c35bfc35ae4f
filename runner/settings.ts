/**
 * What a session's creator asked of its browser, done: the engine and what is fixed when it starts,
 * the size of pages, their domains, the ways that connections leave. What cannot be had on one's
 * own machine is a warning in the session's log, never a refusal. Source: reference.md 1.2.1.
 */

import type { Upstream } from '../proto/proxies.ts';
import { keepToDomains } from './chrome/domains.ts';
import { WINDOW } from './chrome/flags.ts';
import type { Chrome } from './chrome/launch.ts';
import { openPages } from './chrome/pages.ts';
import type { TakeOptions } from './chrome/pool.ts';
import { setViewport, type Viewport } from './chrome/viewport.ts';
import type { Filters } from './filters.ts';
import { planOf } from './proxies.ts';
import type { OpenPart } from './session.ts';

/** As core has checked it. */
export type SessionParams = {
  proxies?: unknown;
  extensionId?: string;
  browserSettings?: {
    viewport?: Viewport;
    blockAds?: boolean;
    solveCaptchas?: boolean;
    recordSession?: boolean;
    logSession?: boolean;
    advancedStealth?: boolean;
    verified?: boolean;
    os?: string;
    allowedDomains?: string[];
    ignoreCertificateErrors?: boolean;
    extensionId?: string;
    fingerprint?: object;
    engine?: TakeOptions['engine'];
  };
};

/** What this runner has for sessions. */
export type SettingsDeps = {
  /** The operator's proxy. */
  proxy: Upstream | undefined;
  filters: Filters;
};

export type Settings = { wanted: TakeOptions; open: OpenPart };

/** `usual`: the engine where none is asked for. */
export function sessionSettings(
  params: SessionParams,
  usual: TakeOptions['engine'],
  { proxy, filters, warn }: SettingsDeps & { warn: (message: string) => void },
): Settings {
  const { browserSettings = {}, proxies } = params;
  const {
    engine = usual,
    ignoreCertificateErrors,
    viewport,
    allowedDomains = [],
  } = browserSettings;
  const plan = planOf(proxies, proxy);
  for (const warning of [...plan.warnings, ...cannot(browserSettings)]) warn(warning);

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
      return { end: async () => undefined };
    },
  };
}

/** What was asked for and needs something that this machine has not. */
function cannot(asked: NonNullable<SessionParams['browserSettings']>): string[] {
  const { verified, advancedStealth, solveCaptchas, os, fingerprint } = asked;
  return [
    ...(verified === true || advancedStealth === true
      ? ['verified: no verified browser is set up here; an ordinary one is used']
      : []),
    ...(solveCaptchas === true
      ? ['solveCaptchas: no solver is set up here; captchas stay as they are']
      : []),
    ...(os !== undefined && os !== 'linux' ? [`os: there is no ${os} here; it is linux`] : []),
    ...(fingerprint !== undefined ? ['fingerprint: is not acted on'] : []),
  ];
}
