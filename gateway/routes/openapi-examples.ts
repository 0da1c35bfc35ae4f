/**
 * An example body for each operation that takes JSON, by operationId. `since` is a time of the last
 * 30 days.
 */
export const EXAMPLES: Readonly<Record<string, object>> = {
  createSession: {
    keepAlive: true,
    timeout: 3600,
    browserSettings: { viewport: { width: 1280, height: 800 }, blockAds: true },
    userMetadata: { job: 'nightly' },
  },
  updateSession: { status: 'REQUEST_RELEASE' },
  createHandoff: { instructions: 'Log in, please', timeout: 600 },
  takeScreenshot: { url: 'https://example.com/', viewport: { width: 1280, height: 800 } },
  printPdf: { url: 'https://example.com/', format: 'a4', printBackground: true },
  readContent: { url: 'https://example.com/', waitUntil: 'networkidle' },
  readMarkdown: { url: 'https://example.com/' },
  fetchResource: { url: 'https://example.com/', format: 'markdown', allowRedirects: true },
  searchWeb: { query: 'the longest river', numResults: 5 },
  readLinks: { url: 'https://example.com/' },
  createContext: { name: 'shop' },
  invokeFunction: { params: { url: 'https://example.com/' } },
  cancelInvocation: {},
  createSchedule: {
    cron: '0 9 * * MON-FRI',
    timeZone: 'Europe/Berlin',
    params: { url: 'https://example.com/' },
  },
  updateSchedule: { enabled: false },
  createWebhook: {
    endpoint: 'https://example.com/hook',
    eventTypes: ['functions.invocations.completed', 'functions.invocations.failed'],
  },
  createLabel: { name: 'nightly' },
  updateLabel: { name: 'weekly' },
  setSessionLabels: { labels: ['nightly', 'checkout'] },
  updateWebhook: { eventTypes: ['functions.builds.completed'] },
  rotateSecret: { revokeImmediately: false },
  recoverDeliveries: { since: '2026-11-01T00:00:00Z' },
};
