/**
 * Chrome's command line: every flag in one place with its reason. Pure. A flag without a reason is
 * deleted.
 */
import type { Engine } from './find.ts';

/** The size every page's content starts with; neither engine has it by itself. */
export const WINDOW = { width: 1280, height: 800 } as const;
/** In CSS pixels: what Chromium shows above a page, of its window. */
const TOOLBAR_HEIGHT = 87;

export type FlagFacts = {
  engine: Pick<Engine, 'kind'>;
  /** As Chrome sees them. */
  profile: string;
  cache: string;
  proxyPort: number;
  /** Its own sandbox works here. */
  hasSandbox: boolean;
  /** /dev/shm is too small for it. */
  hasSmallShm: boolean;
  /** A session asked for it. */
  ignoreCertificateErrors: boolean;
  /** An extension to load, as Chrome sees it; full Chromium only. */
  extension: string | undefined;
};

/** Only the last --disable-features counts, so all of them stand here. */
const DISABLED_FEATURES: Readonly<Record<Engine['kind'], readonly string[]>> = {
  'headless-shell': ['Translate'],
  chromium: [
    // Chromium 156 preloads this page and for a moment reports it as a page target: clients take it
    // for theirs
    'WebUIOmniboxPopup',
    'WebUIOmniboxAimPopup',
    'Translate', // a bubble that asks a service
    'MediaRouter', // looks for cast devices on the network
    'OptimizationHints', // fetches models
  ],
};

export function chromeFlags(facts: FlagFacts): string[] {
  const { engine, profile, cache, proxyPort, hasSandbox, hasSmallShm, extension } = facts;
  const height = WINDOW.height + (engine.kind === 'chromium' ? TOOLBAR_HEIGHT : 0);
  return [
    '--remote-debugging-pipe', // no port that others could reach; Chrome ends when the pipe does
    ...(engine.kind === 'chromium' ? ['--headless=new'] : []),
    // only where user namespaces are missing; said loudly at start
    ...(hasSandbox ? [] : ['--no-sandbox']),
    ...(hasSmallShm ? ['--disable-dev-shm-usage'] : []), // pages crash when shared memory is full
    `--user-data-dir=${profile}`,
    // outside the profile: 56 of 64 MB of a used one are cache. With it in the shell, the pages of
    // every browser context but the first wait for the network without end (Chromium 156)
    ...(engine.kind === 'chromium' ? [`--disk-cache-dir=${cache}`] : []),
    `--window-size=${WINDOW.width},${height}`,
    // the only way out; plain http by SOCKS, which makes a tunnel of it: nobody need read requests
    `--proxy-server=http=socks5://127.0.0.1:${proxyPort};https=127.0.0.1:${proxyPort}`,
    '--proxy-bypass-list=<-loopback>', // without it loopback addresses pass the proxy by
    '--webrtc-ip-handling-policy=disable_non_proxied_udp', // STUN would leave beside the proxy
    '--disable-quic', // likewise UDP
    ...(facts.ignoreCertificateErrors ? ['--ignore-certificate-errors'] : []),
    '--disable-gpu', // there is none
    '--password-store=basic', // cookies must be readable by the next Chrome that gets the profile
    '--disable-blink-features=AutomationControlled', // navigator.webdriver is false
    `--disable-features=${DISABLED_FEATURES[engine.kind].join(',')}`,
    '--disable-background-networking', // phones home
    '--disable-component-update', // phones home
    '--disable-sync', // phones home
    '--disable-breakpad', // crash dumps hold pages
    ...(extension === undefined
      ? []
      : [`--load-extension=${extension}`, `--disable-extensions-except=${extension}`]),
    '--no-first-run', // a page nobody asked for
    '--no-default-browser-check', // likewise
    '--noerrdialogs', // nobody could close them
    '--mute-audio', // there is no device to play on
    '--no-startup-window', // launch.ts makes the default page, and needs not wait for it
  ];
}
