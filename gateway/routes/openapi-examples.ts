/** A sealed value of one character. */
function sealed() {
  const sealedSecretValue = 'iEe1a7IA6v0xuUzyJaZNt4OwFKqvUqwaVbIGb5x+QXaTWBYrBZx2OnH1AfMGqKYLaw==';
  return { keypairId: '0198c0de-0000-7000-8000-000000000000', sealedSecretValue };
}

/**
 * An example body for each operation that takes JSON, by operationId. `since` is a time of the last
 * 30 days, `keypairId` the project's.
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
  createSecret: { secretKey: 'SHOP_TOKEN', ...sealed() },
  updateSecret: sealed(),
  attachSecret: { secretId: '0198c0de-0000-7000-8000-000000000000' },
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
