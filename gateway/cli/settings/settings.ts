/**
 * Every setting there is: a variable, a flag of the roles that read it, a member of the settings
 * file. The first that is given wins: flag, variable, its _FILE, the settings file, the default.
 */

export type Role = 'core' | 'gateway' | 'runner' | 'tools';

export type Setting = {
  /** Without `TABERN_`. */
  name: string;
  /** As it would be written; undefined: none, or found. */
  default?: string;
  says: string;
  roles: readonly Role[];
  /** Never a flag, as everybody on the machine can read those, and never printed. */
  isSecret?: boolean;
};

/** `WEBHOOK_CA` -> `webhookCa`, as in the settings file. */
export function memberOf(name: string): string {
  return name.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `WEBHOOK_CA` -> `--webhook-ca <value>`. */
export function flagOf({ name }: Setting): string {
  return `--${name.toLowerCase().replaceAll('_', '-')} <value>`;
}

const CORE: readonly Role[] = ['core'];
const GATEWAY: readonly Role[] = ['gateway'];
const RUNNER: readonly Role[] = ['runner'];
const TOOLS: readonly Role[] = ['tools'];
const HTTP: readonly Role[] = ['gateway', 'tools'];
const METERED: readonly Role[] = ['gateway', 'runner'];
const HOOKS: readonly Role[] = ['core', 'gateway'];
const KEYED: readonly Role[] = ['core', 'tools'];
const DIALLERS: readonly Role[] = ['gateway', 'runner', 'tools'];
const ALL: readonly Role[] = ['core', 'gateway', 'runner'];
const ALL_AND_TOOLS: readonly Role[] = [...ALL, 'tools'];

const OF_SERVICE: readonly Setting[] = [
  {
    name: 'DATA',
    roles: ALL_AND_TOOLS,
    default: './tabern_data',
    says: 'the data directory: database, blobs, keys (0700)',
  },
  { name: 'HOST', roles: HTTP, default: '127.0.0.1', says: 'where HTTP listens' },
  { name: 'PORT', roles: HTTP, default: '4747', says: 'its port; 0 takes a free one' },
  {
    name: 'PUBLIC_URL',
    roles: GATEWAY,
    says: 'the URL clients use when a proxy stands in front; printed at start',
  },
  {
    name: 'TLS_CERT_FILE',
    roles: GATEWAY,
    says: 'PEM file of the certificate, with those that lead to its root: https and wss',
  },
  {
    name: 'TLS_KEY_FILE',
    roles: GATEWAY,
    says: 'PEM file of its key; both are read again at SIGHUP',
  },
  {
    name: 'METRICS_LISTEN',
    roles: METERED,
    says: 'host:port of GET /metrics; nowhere when absent',
  },
  {
    name: 'CORE',
    roles: DIALLERS,
    says: "core's address, for a part that runs alone; unix:<data>/core.sock when absent",
  },
  {
    name: 'BASE_URL',
    roles: TOOLS,
    says: 'the service, for commands that call it; http://127.0.0.1:4747 when absent',
  },
  {
    name: 'CONFIG',
    roles: ALL_AND_TOOLS,
    says: 'path of a settings file: JSON, such as {"port": 8080, "logLevel": "warn"}',
  },
  {
    name: 'CACHE_DIR',
    roles: TOOLS,
    says:
      'where the single executable unpacks its files; ' +
      "systemd's CACHE_DIRECTORY, or ~/.cache/tabern/program, when absent",
  },
  {
    name: 'LOG_LEVEL',
    roles: ALL,
    default: 'info',
    says: 'trace, debug, info, warn, error, fatal or silent',
  },
  {
    name: 'API_KEY',
    roles: KEYED,
    isSecret: true,
    says:
      'a key of the default project: 24 or more printable ASCII characters; made at the ' +
      'first start',
  },
  {
    name: 'OPERATOR_TOKEN',
    roles: TOOLS,
    isSecret: true,
    says: 'opens core to its operator; a file in <data>/keys when absent',
  },
  {
    name: 'GATEWAY_TOKEN',
    roles: GATEWAY,
    isSecret: true,
    says: 'opens core to a gateway; a file in <data>/keys when absent',
  },
  {
    name: 'RUNNER_TOKEN',
    roles: RUNNER,
    isSecret: true,
    says: 'opens core to a runner; a file in <data>/keys when absent',
  },
  {
    name: 'DURABILITY',
    roles: CORE,
    default: 'full',
    says: 'normal may lose the last moments with the power, never with the process',
  },
  {
    name: 'LEASE_MS',
    roles: CORE,
    default: '15000',
    says: 'how long a silent runner keeps its work',
  },
  {
    name: 'SWEEP_MS',
    roles: CORE,
    default: '1000',
    says: 'how often lost work is looked for',
  },
  {
    name: 'CLOCK_SETTLE_MS',
    roles: CORE,
    default: '600000',
    says: "the service's clock is set to the machine's when they have differed for so long",
  },
  {
    name: 'CONCURRENCY',
    roles: CORE,
    default: '25',
    says: 'sessions that a new project may have at once, and invocations that it may run',
  },
  {
    name: 'QUEUE_MAX',
    roles: CORE,
    default: '1000',
    says: 'invocations, and builds, of a project that may wait; past it 429',
  },
  {
    name: 'EXTENSIONS_MAX',
    roles: CORE,
    default: '100',
    says: 'extensions that a project may have; past it 409',
  },
  {
    name: 'CONTEXTS_MAX',
    roles: CORE,
    default: '10000',
    says: 'contexts that a project may have, unless its operator says otherwise; past it 409',
  },
  {
    name: 'CONTEXT_MIB',
    roles: CORE,
    default: '20480',
    says: 'MiB that the contexts of a project may hold; past it a save is a warning',
  },
  {
    name: 'DOWNLOAD_MIB',
    roles: CORE,
    default: '20480',
    says: 'MiB of downloads that a project may store; past it a download is a warning',
  },
  {
    name: 'RECORDING_MIB',
    roles: CORE,
    default: '20480',
    says: 'MiB of recordings that a project may store; past it a recording stops with a warning',
  },
  {
    name: 'UPLOAD_MIB',
    roles: CORE,
    default: '10240',
    says: 'MiB of archives, bundles and extensions that a project may store; past it 409',
  },
  {
    name: 'LOG_MIB',
    roles: CORE,
    default: '10240',
    says:
      'MiB of protocol logs and results of a project; past it logs end; ' +
      'invokes are 409 when the results alone reach it',
  },
  {
    name: 'SESSION_DAYS',
    roles: CORE,
    default: '90',
    says: 'days that ended sessions are kept; longer while anything else of them is',
  },
  {
    name: 'SESSION_LOG_DAYS',
    roles: CORE,
    default: '30',
    says: 'days that protocol logs of sessions are kept',
  },
  {
    name: 'RECORDING_DAYS',
    roles: CORE,
    default: '31',
    says: 'days that recordings are kept',
  },
  {
    name: 'DOWNLOAD_DAYS',
    roles: CORE,
    default: '30',
    says: 'days that files which pages downloaded are kept',
  },
  {
    name: 'INVOCATION_DAYS',
    roles: CORE,
    default: '90',
    says: 'days that ended invocations are kept',
  },
  {
    name: 'BUILD_DAYS',
    roles: CORE,
    default: '90',
    says: 'days that builds, and versions, are kept that nobody runs any more',
  },
  {
    name: 'LOG_DAYS',
    roles: CORE,
    default: '30',
    says: 'days that logs of invocations and builds are kept',
  },
  {
    name: 'EVENT_DAYS',
    roles: CORE,
    default: '30',
    says: 'days that events and their deliveries are kept',
  },
  {
    name: 'WEBHOOK_RATE',
    roles: CORE,
    default: '50',
    says: 'deliveries a second to one webhook',
  },
  {
    name: 'WEBHOOK_ALLOW_CIDRS',
    roles: HOOKS,
    says: 'private addresses that webhooks may reach, comma-separated',
  },
  {
    name: 'WEBHOOK_CA',
    roles: GATEWAY,
    says: "path of PEM certificates that endpoints may be signed by, beside the system's",
  },
  {
    name: 'WEBHOOK_DISABLE_AFTER',
    roles: CORE,
    default: '120',
    says: 'hours of nothing but failure that disable a webhook',
  },
  {
    name: 'WEBHOOK_DISABLE_SILENCE',
    roles: CORE,
    default: 'on',
    says: 'off: a first failure after a day of silence may disable, too',
  },
];

const OF_RUNNERS: readonly Setting[] = [
  {
    name: 'SANDBOX',
    roles: RUNNER,
    default: 'auto',
    says: 'bwrap, landlock, or auto, the first of them that works; none contains nothing',
  },
  {
    name: 'ENGINE',
    roles: RUNNER,
    says: 'what runs handlers: node or deno; what runs the runner when absent',
  },
  { name: 'DENO_PATH', roles: RUNNER, says: 'path of Deno; found when absent' },
  {
    name: 'ISOLATION',
    roles: RUNNER,
    default: 'warm',
    says:
      'of functions that do not say it: warm, or fresh: a thread of its own for each ' +
      'invocation',
  },
  { name: 'CHROME', roles: RUNNER, says: 'path of a Chrome or Chromium; found when absent' },
  {
    name: 'CHROME_SPARES',
    roles: RUNNER,
    default: '2',
    says: 'browsers that wait, started, for an invocation (0 to 256)',
  },
  {
    name: 'SESSION_SPARES',
    roles: RUNNER,
    default: '1',
    says: 'the same for a session (0 to 256)',
  },
  {
    name: 'HOST_SPARES',
    roles: RUNNER,
    default: '1',
    says: 'function hosts that wait, started, while functions are used (0 to 256)',
  },
  {
    name: 'INVOCATIONS_MAX',
    roles: RUNNER,
    default: '4',
    says: 'invocations that a runner runs at once (1 to 256)',
  },
  {
    name: 'SESSIONS_MAX',
    roles: RUNNER,
    default: '25',
    says: 'sessions that a runner holds at once, beside those of invocations (1 to 256)',
  },
  {
    name: 'BROWSER_MEMORY_MB',
    roles: RUNNER,
    default: '4096',
    says: "MiB of memory that a session's browser may use before it is ended (0: no limit)",
  },
  {
    name: 'BUILDS_MAX',
    roles: RUNNER,
    default: '1',
    says: 'builds that a runner runs at once (1 to 256)',
  },
  {
    name: 'SESSION_GRACE_MS',
    roles: RUNNER,
    default: '3000',
    says: 'for a client to come back after the last one has left (0 to 60,000)',
  },
  {
    name: 'RUNNER_LISTEN',
    roles: RUNNER,
    says:
      "host:port at which gateways on other machines reach this runner's sessions; plain, " +
      'so private networks only',
  },
  {
    name: 'PROXY',
    roles: RUNNER,
    isSecret: true,
    says:
      'proxy of sessions that ask for a managed one: http://user:secret@host:3128, https: ' +
      'or socks5:',
  },
  {
    name: 'AD_LISTS',
    roles: RUNNER,
    says:
      "files and addresses of filter lists for blockAds, comma-separated; EasyList's " +
      'address when absent',
  },
  {
    name: 'BROWSER_ALLOW_CIDRS',
    roles: RUNNER,
    says:
      "private addresses, and this machine's own, that pages and handlers may reach, " +
      'comma-separated',
  },
];

export const SETTINGS: readonly Setting[] = [...OF_SERVICE, ...OF_RUNNERS];
