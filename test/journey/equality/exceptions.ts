/**
 * Where a session differs from a Chromium that a driver launches, with the reason. Both answers are
 * part of the exception, so that one that is no longer true fails.
 */

export type Exception = {
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

export const EXCEPTIONS: readonly Exception[] = [
  {
    thing: 'the address of a server',
    plain: ['127.0.0.1', true],
    session: ['127.0.0.1', false],
    reason: 'every connection goes through the egress, so Chrome reports the address of the egress',
  },
  {
    thing: 'addresses of other schemes',
    plain: ['net::ERR_ABORTED at foo://bar', 'a page'],
    session: [REFUSED, REFUSED],
    reason: "files of the host and Chrome's own pages are not the tenant's",
  },
  {
    thing: "a download in the driver's own directory",
    plain: 'downloaded',
    session: 'ENOENT',
    reason: 'a remote browser has no directory of the driver: the service keeps the files',
  },
  {
    thing: 'navigator.webdriver',
    plain: true,
    session: false,
    reason: 'sites refuse automated browsers by it; Playwright adds --enable-automation',
  },
];
