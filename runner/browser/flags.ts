/**
 * Chrome's command line: every flag in one place with its reason. Pure. A flag without a reason is
 * deleted. Drivers are written against the flags that they give their own launches, so ours has
 * those as well: test/runner/browser/flags.test.ts compares them and lists what is left out.
 */
import type { Engine } from './find.ts';

/** The size every page's content starts with; neither engine has it by itself. */
export const WINDOW = { width: 1280, height: 800 } as const;
/** In CSS pixels: what Chromium shows above a page, of its window. */
export const TOOLBAR_HEIGHT = 87;

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

/** Chrome reads the last --disable-features alone, so all of them stand here. */
const DISABLED_FEATURES: readonly string[] = [
  // Chromium 156 preloads this page and for a moment reports it as a page target: clients take it
  // for theirs
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIReloadButton', // likewise
  'Translate', // a bubble that asks a service
  'MediaRouter', // looks for cast devices on the network
  'OptimizationHints', // fetches models
  'NetworkTimeServiceQuerying', // phones home
  'AimEnabled', // phones home
  'PreconnectToSearch', // connects to the search engine before anybody searches
  'LensOverlay', // a bubble over the page
  'HttpsUpgrades', // http:// stays http://, or a route for it never matches
  'HttpsFirstBalancedModeAutoEnable', // likewise
  'PaintHolding', // a screenshot after a navigation would show the page before it
  'AvoidUnnecessaryBeforeUnloadCheckSync', // playwright#14047: changes beforeunload dialogs
  'DestroyProfileOnBrowserClose', // the profile stays when its last page is closed
  'ThirdPartyStoragePartitioning', // playwright#32230: storage is set by origin alone
  'AvoidCorsURLLoaderRestartOnRedirect', // playwright#43242: interception aborts redirects
  'AcceptCHFrame', // crbug.com/1348106: restarts intercepted requests
  'ProcessPerSiteUpToMainFrameThreshold', // crbug.com/1492053: pages share a process
  'IsolateSandboxedIframes', // puppeteer#12381: sandboxed frames in processes of their own
];
const ENABLED_FEATURES: readonly string[] = [
  'CDPScreenshotNewSurface', // Playwright takes screenshots this way
  'SkipListAccountsWithoutGaiaCookies', // phones home
  'PdfOopif', // Puppeteer expects the PDF viewer in a frame
];
/** Hover and a fine pointer, as with a mouse: without a device pages choose their touch layout. */
const POINTERS =
  'primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4';

/** Constant flags that the drivers rely on. */
const DRIVER_FLAGS: readonly string[] = [
  '--disable-field-trial-config', // trials of unbranded builds: releases do not have them
  '--disable-back-forward-cache', // a restored page sends no load events: goBack() would time out
  // pages behind others run like the one in front
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-ipc-flooding-protection', // a script may navigate as often as it likes
  '--disable-popup-blocking', // a popup opens without a click
  '--disable-prompt-on-repost', // nobody could answer
  '--disable-hang-monitor', // likewise
  '--allow-pre-commit-input', // a click before the first paint counts
  '--force-color-profile=srgb', // screenshots are the same on every machine
  '--hide-scrollbars', // likewise
  `--blink-settings=${POINTERS}`,
  '--generate-pdf-document-outline', // Page.printToPDF ignores generateDocumentOutline without it
  '--disable-component-extensions-with-background-pages', // targets that are nobody's
  '--disable-default-apps', // phones home
  '--metrics-recording-only', // phones home
  '--disable-search-engine-choice-screen', // a page nobody asked for
  '--disable-infobars', // Chrome for Testing puts a bar above the page
];

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
    `--screen-info={${WINDOW.width}x${height}}`, // else 800x600, smaller than what it shows
    // the only way out; plain http by SOCKS, which makes a tunnel of it: nobody need read requests
    `--proxy-server=http=socks5://127.0.0.1:${proxyPort};https=127.0.0.1:${proxyPort}`,
    '--proxy-bypass-list=<-loopback>', // without it loopback addresses pass the proxy by
    '--webrtc-ip-handling-policy=disable_non_proxied_udp', // STUN would leave beside the proxy
    '--disable-quic', // likewise UDP
    ...(facts.ignoreCertificateErrors ? ['--ignore-certificate-errors'] : []),
    '--disable-gpu', // there is none
    '--password-store=basic', // cookies must be readable by the next Chrome that gets the profile
    '--disable-blink-features=AutomationControlled', // navigator.webdriver is false
    `--disable-features=${DISABLED_FEATURES.join(',')}`,
    `--enable-features=${ENABLED_FEATURES.join(',')}`,
    ...DRIVER_FLAGS,
    '--disable-background-networking', // phones home
    '--disable-component-update', // phones home
    '--disable-sync', // phones home
    '--disable-breakpad', // crash dumps hold pages
    // a profile brings none of its own
    ...(extension === undefined
      ? ['--disable-extensions']
      : [`--load-extension=${extension}`, `--disable-extensions-except=${extension}`]),
    '--no-first-run', // a page nobody asked for
    '--no-default-browser-check', // likewise
    '--noerrdialogs', // nobody could close them
    '--mute-audio', // there is no device to play on
    '--no-startup-window', // launch.ts makes the default page, and needs not wait for it
  ];
}
