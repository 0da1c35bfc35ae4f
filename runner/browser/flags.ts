/**
 * Chrome's command line: every flag with its reason. Pure. Flags without a reason are removed.
 * Drivers rely on the flags of their own launches, so these are included:
 * test/runner/browser/flags.test.ts compares them and lists the omitted ones.
 */
import type { Engine } from './find.ts';

/** The initial size of every page's content; neither engine has it by default. */
export const WINDOW = { width: 1280, height: 800 } as const;
/** In CSS pixels: the part of its window that Chromium uses above a page. */
export const TOOLBAR_HEIGHT = 87;

export type FlagFacts = {
  engine: Pick<Engine, 'kind'>;
  /** As Chrome sees them. */
  profile: string;
  cache: string;
  proxyPort: number;
  /** Chrome's own sandbox works here. */
  hasSandbox: boolean;
  /** /dev/shm is too small for Chrome. */
  hasSmallShm: boolean;
  /** Set by the session. */
  ignoreCertificateErrors: boolean;
  /** Extensions to load, as Chrome sees them; full Chromium only. */
  extensions: readonly string[];
};

/** Chrome uses only the last --disable-features, so all of them are listed here. */
const DISABLED_FEATURES: readonly string[] = [
  // Chromium 156 preloads this page and briefly reports it as a page target: clients take it for
  // theirs
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIReloadButton', // same reason
  'Translate', // a bubble that contacts a service
  'MediaRouter', // looks for cast devices on the network
  'OptimizationHints', // fetches models
  'NetworkTimeServiceQuerying', // phones home
  'AimEnabled', // phones home
  'PreconnectToSearch', // connects to the search engine before any search
  'LensOverlay', // a bubble over the page
  'HttpsUpgrades', // http:// stays http://, or a route for it never matches
  'HttpsFirstBalancedModeAutoEnable', // same reason
  'PaintHolding', // a screenshot after a navigation would show the previous page
  'AvoidUnnecessaryBeforeUnloadCheckSync', // playwright#14047: changes beforeunload dialogs
  'DestroyProfileOnBrowserClose', // the profile is kept when its last page is closed
  'ThirdPartyStoragePartitioning', // playwright#32230: storage is set by origin alone
  'AvoidCorsURLLoaderRestartOnRedirect', // playwright#43242: interception aborts redirects
  'AcceptCHFrame', // crbug.com/1348106: restarts intercepted requests
  'ProcessPerSiteUpToMainFrameThreshold', // crbug.com/1492053: pages share a process
  'IsolateSandboxedIframes', // puppeteer#12381: sandboxed frames in processes of their own
];
const ENABLED_FEATURES: readonly string[] = [
  'CDPScreenshotNewSurface', // Playwright takes screenshots this way
  'SkipListAccountsWithoutGaiaCookies', // phones home
  // small resources share a few files of the HTTP cache, as on Windows; by default each has its
  // own, and the network process of a page of 100 took up to a quarter more CPU time
  'DiskCacheBackendExperiment:backend/blockfile',
  'PdfOopif', // Puppeteer expects the PDF viewer in a frame
];
/** Hover and a fine pointer, as with a mouse: without a device pages select their touch layout. */
const POINTERS =
  'primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4';

/** Constant flags that the drivers rely on. */
const DRIVER_FLAGS: readonly string[] = [
  '--disable-field-trial-config', // trials of unbranded builds: releases do not have them
  '--disable-back-forward-cache', // a restored page sends no load events: goBack() would time out
  // background pages run at full speed
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-ipc-flooding-protection', // scripts may navigate without a rate limit
  '--disable-popup-blocking', // popups open without a click
  '--disable-prompt-on-repost', // no user can respond
  '--disable-hang-monitor', // same reason
  '--allow-pre-commit-input', // clicks before the first paint count
  '--force-color-profile=srgb', // screenshots are the same on every machine
  '--hide-scrollbars', // same reason
  `--blink-settings=${POINTERS}`,
  '--generate-pdf-document-outline', // Page.printToPDF ignores generateDocumentOutline without it
  '--disable-component-extensions-with-background-pages', // targets that belong to no client
  '--disable-default-apps', // phones home
  '--metrics-recording-only', // phones home
  '--disable-search-engine-choice-screen', // an unwanted page
  '--disable-infobars', // Chrome for Testing puts a bar above the page
];

export function chromeFlags(facts: FlagFacts): string[] {
  const { engine, profile, cache, proxyPort, hasSandbox, hasSmallShm } = facts;
  const extensions = facts.extensions.join(',');
  const height = WINDOW.height + (engine.kind === 'chromium' ? TOOLBAR_HEIGHT : 0);
  return [
    '--remote-debugging-pipe', // no port that others could reach; Chrome exits when the pipe closes
    ...(engine.kind === 'chromium' ? ['--headless=new'] : []),
    // only where user namespaces are missing; logged as a warning at start
    ...(hasSandbox ? [] : ['--no-sandbox']),
    ...(hasSmallShm ? ['--disable-dev-shm-usage'] : []), // pages crash when shared memory is full
    `--user-data-dir=${profile}`,
    // outside the profile: 56 of 64 MB of a used one are cache. In the shell this flag makes the
    // pages of every browser context but the first wait for the network forever (Chromium 156)
    ...(engine.kind === 'chromium' ? [`--disk-cache-dir=${cache}`] : []),
    `--window-size=${WINDOW.width},${height}`,
    `--screen-info={${WINDOW.width}x${height}}`, // the default is 800x600, smaller than the window
    // the only network access; plain http uses SOCKS, which makes it a tunnel: requests need not be
    // parsed
    `--proxy-server=http=socks5://127.0.0.1:${proxyPort};https=127.0.0.1:${proxyPort}`,
    '--proxy-bypass-list=<-loopback>', // without it loopback addresses bypass the proxy
    '--webrtc-ip-handling-policy=disable_non_proxied_udp', // STUN would bypass the proxy
    '--disable-quic', // so would UDP
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
    '--disable-breakpad', // crash dumps contain page content
    // a profile brings no extensions of its own
    ...(extensions === ''
      ? ['--disable-extensions']
      : [`--load-extension=${extensions}`, `--disable-extensions-except=${extensions}`]),
    '--no-first-run', // an unwanted page
    '--no-default-browser-check', // same reason
    '--noerrdialogs', // no user can close them
    '--mute-audio', // there is no audio device
    '--no-startup-window', // launch.ts creates the default page without waiting for it
  ];
}
