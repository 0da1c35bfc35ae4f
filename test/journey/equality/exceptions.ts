/**
 * Differences between a session and a Chromium that a driver launches, with the reason. An
 * exception has both results, so an outdated one fails.
 */

export type Exception = {
  driver: 'playwright' | 'puppeteer';
  thing: string;
  /** Both when absent. */
  engine?: 'chromium' | 'headless-shell';
  plain: unknown;
  session: unknown;
  reason: string;
};

const REFUSED =
  'Protocol error (Page.navigate): Page.navigate is not available: ' +
  'only http, https, data and blob URLs and about:blank can be opened';

const NO_ENTRY = 'History entry to navigate to not found.';

export const EXCEPTIONS: readonly Exception[] = [
  {
    driver: 'playwright',
    thing: 'the address of a server',
    plain: ['127.0.0.1', true],
    session: ['127.0.0.1', false],
    reason: 'every connection goes through the egress, so Chrome reports the address of the egress',
  },
  {
    driver: 'playwright',
    thing: 'URLs of other schemes',
    plain: ['net::ERR_ABORTED at foo://bar', 'a page'],
    session: [REFUSED, REFUSED],
    reason: "files of the host and Chrome's own pages are not the tenant's",
  },
  {
    driver: 'playwright',
    thing: "a download in the driver's own directory",
    plain: 'downloaded',
    session: 'ENOENT',
    reason: 'a remote browser has no directory of the driver: the service keeps the files',
  },
  {
    driver: 'playwright',
    thing: 'navigator.webdriver',
    plain: true,
    session: false,
    reason: 'sites refuse automated browsers by it; Playwright adds --enable-automation',
  },
  {
    driver: 'playwright',
    thing: 'an upload of 13 MiB from memory',
    plain: [['made', 13 << 20, 1, 1]],
    session: 'Target page, context or browser has been closed',
    reason: 'a message of a client has 16 MiB at most, and files out of memory are one message',
  },
  {
    driver: 'playwright',
    thing: 'an upload of 51 MiB from a path',
    plain: [['larger', 51 << 20, 0, 0]],
    session: 'Cannot transfer files larger than 50Mb to a browser not co-located with the server',
    reason: "Playwright's own rule for browsers that it has not launched",
  },
  {
    driver: 'playwright',
    thing: 'an upload of a directory',
    plain: ['given', 1],
    session: ['Timeout 3000ms exceeded.', 0],
    reason: "a remote browser has no directory of the driver's machine; Playwright tries again",
  },
  {
    driver: 'puppeteer',
    thing: "a file of the driver's machine, by a file chooser",
    plain: [false, 'accepted', [['one.txt', 5, 'first']]],
    session: [
      false,
      'Protocol error (DOM.setFileInputFiles): DOM.setFileInputFiles is not available: ' +
        'only files below /tmp/.uploads can be given to a page',
      [],
    ],
    reason: "a remote browser has no file of the driver's machine: Puppeteer sends its path alone",
  },
  {
    driver: 'puppeteer',
    thing: 'the default window, and navigator.webdriver',
    plain: [800, 600, true, 1, 'en-US', true, true],
    session: [800, 600, true, 1, 'en-US', true, false],
    reason: 'sites refuse automated browsers by it; Puppeteer adds --enable-automation',
  },
  {
    driver: 'puppeteer',
    thing: 'history: goBack, goForward, reload, pushState',
    engine: 'chromium',
    plain: [null, null, 200, 'http://other/pushed', NO_ENTRY, 4],
    session: [200, 'http://other/two', 200, 'http://other/pushed', NO_ENTRY, 4],
    reason: 'no page is kept for going back: Playwright waits for events that such a page lacks',
  },
  {
    driver: 'playwright',
    thing: 'a bypass rule with a port',
    plain: [200, '{"a":1}'],
    session:
      'Protocol error (Target.createBrowserContext): Target.createBrowserContext ' +
      'is not available: ' +
      'proxyServer proxyBypassList names hosts: a.test, *.a.test, [::1], 10.0.0.0/8',
    reason: 'the egress knows the host alone when it chooses a way',
  },
];
