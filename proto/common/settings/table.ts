/**
 * Every setting there is. From its row come the variable `TABERN_<name>`, the flag, the member of
 * the settings file, the help, the reference in README.md, and the value's type in code.
 */
import { CONCURRENCY_MAX, QUEUE_MAX, QUOTA_MAX } from '../limits.ts';
import type { Row } from './types.ts';

const CORE = ['core'] as const;
const GATEWAY = ['gateway'] as const;
const RUNNER = ['runner'] as const;
const TOOLS = ['tools'] as const;
const HTTP = ['gateway', 'tools'] as const;
const METERED = ['gateway', 'runner'] as const;
const HOOKS = ['core', 'gateway'] as const;
const KEYED = ['core', 'tools'] as const;
const DIALLERS = ['gateway', 'runner', 'tools'] as const;
const ALL = ['core', 'gateway', 'runner'] as const;
const ALL_AND_TOOLS = ['core', 'gateway', 'runner', 'tools'] as const;

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const QUOTA = { type: 'integer', range: [1, QUOTA_MAX], roles: CORE } as const;
/** Up to ten years: whoever wants more keeps a backup. Ours. */
const DAYS = { type: 'integer', range: [1, 3_650], roles: CORE } as const;
const SPARES = { type: 'integer', range: [0, 256], roles: RUNNER } as const;
const AT_ONCE = { type: 'integer', range: [1, 256], roles: RUNNER } as const;

const TABLE = [
  {
    name: 'DATA',
    type: 'path',
    default: './tabern_data',
    roles: ALL_AND_TOOLS,
    description: 'the data directory: database, blobs, keys (0700)',
  },
  {
    name: 'HOST',
    type: 'text',
    default: '127.0.0.1',
    roles: HTTP,
    description: 'where HTTP listens',
  },
  {
    name: 'PORT',
    type: 'integer',
    range: [0, 65_535],
    default: '4747',
    roles: HTTP,
    description: 'its port; 0 takes a free one',
  },
  {
    name: 'PUBLIC_URL',
    type: 'url',
    roles: GATEWAY,
    description: 'the URL clients use when a proxy stands in front; printed at start',
  },
  {
    name: 'TLS_CERT_FILE',
    type: 'text',
    roles: GATEWAY,
    description: 'PEM file of the certificate, with those that lead to its root: https and wss',
  },
  {
    name: 'TLS_KEY_FILE',
    type: 'text',
    roles: GATEWAY,
    description: 'PEM file of its key; both are read again at SIGHUP',
  },
  {
    name: 'METRICS_LISTEN',
    type: 'listen',
    roles: METERED,
    description: 'host:port of GET /metrics; nowhere when absent',
  },
  {
    name: 'CORE',
    type: 'text',
    roles: DIALLERS,
    description: "core's address, for a part that runs alone; unix:<data>/core.sock when absent",
  },
  {
    name: 'BASE_URL',
    type: 'text',
    roles: TOOLS,
    description: 'the service, for commands that call it; http://127.0.0.1:4747 when absent',
  },
  {
    name: 'CONFIG',
    type: 'text',
    roles: TOOLS,
    description: 'path of a settings file: JSON, such as {"port": 8080, "logLevel": "warn"}',
  },
  {
    name: 'CACHE_DIR',
    type: 'text',
    roles: TOOLS,
    description:
      'where the single executable unpacks its files; ' +
      "systemd's CACHE_DIRECTORY, or ~/.cache/tabern/program, when absent",
  },
  {
    name: 'LOG_LEVEL',
    type: 'choice',
    range: LEVELS,
    default: 'info',
    roles: ALL,
    description: 'the least severe lines that are logged',
  },
  {
    name: 'API_KEY',
    type: 'key',
    roles: KEYED,
    isSecret: true,
    description:
      'a key of the default project, 24 or more printable ASCII characters; made at the ' +
      'first start',
  },
  {
    name: 'OPERATOR_TOKEN',
    type: 'text',
    roles: TOOLS,
    isSecret: true,
    description: 'opens core to its operator; a file in <data>/keys when absent',
  },
  {
    name: 'GATEWAY_TOKEN',
    type: 'text',
    roles: GATEWAY,
    isSecret: true,
    description: 'opens core to a gateway; a file in <data>/keys when absent',
  },
  {
    name: 'RUNNER_TOKEN',
    type: 'text',
    roles: RUNNER,
    isSecret: true,
    description: 'opens core to a runner; a file in <data>/keys when absent',
  },
  {
    name: 'DURABILITY',
    type: 'choice',
    range: ['full', 'normal'],
    default: 'full',
    roles: CORE,
    description: 'normal may lose the last moments with the power, never with the process',
  },
  {
    name: 'LEASE_MS',
    type: 'integer',
    range: [1_000, 300_000],
    default: '15000',
    roles: CORE,
    description: 'how long a silent runner keeps its work',
  },
  {
    name: 'SWEEP_MS',
    type: 'integer',
    range: [50, 60_000],
    default: '1000',
    roles: CORE,
    description: 'how often lost work is looked for',
  },
  {
    name: 'CLOCK_SETTLE_MS',
    type: 'integer',
    range: [1_000, 3_600_000],
    default: '600000',
    roles: CORE,
    description: "the service's clock is set to the machine's when they have differed for so long",
  },
  {
    name: 'CONCURRENCY',
    type: 'integer',
    range: [1, CONCURRENCY_MAX],
    default: '25',
    roles: CORE,
    description: 'sessions that a new project may have at once, and invocations that it may run',
  },
  {
    name: 'QUEUE_MAX',
    type: 'integer',
    range: [1, QUEUE_MAX],
    default: '1000',
    roles: CORE,
    description: 'invocations, and builds, of a project that may wait; past it 429',
  },
  {
    name: 'EXTENSIONS_MAX',
    type: 'integer',
    range: [1, 10_000],
    default: '100',
    roles: CORE,
    description: 'extensions that a project may have; past it 409',
  },
  {
    ...QUOTA,
    name: 'CONTEXTS_MAX',
    default: '10000',
    description:
      'contexts that a project may have, unless its operator says otherwise; past it 409',
  },
  {
    ...QUOTA,
    name: 'CONTEXT_MIB',
    default: '20480',
    description: 'MiB that the contexts of a project may hold; past it a save is a warning',
  },
  {
    ...QUOTA,
    name: 'DOWNLOAD_MIB',
    default: '20480',
    description: 'MiB of downloads that a project may store; past it a download is a warning',
  },
  {
    ...QUOTA,
    name: 'RECORDING_MIB',
    default: '20480',
    description:
      'MiB of recordings that a project may store; past it a recording stops with a warning',
  },
  {
    ...QUOTA,
    name: 'UPLOAD_MIB',
    default: '10240',
    description: 'MiB of archives, bundles and extensions that a project may store; past it 409',
  },
  {
    ...QUOTA,
    name: 'LOG_MIB',
    default: '10240',
    description:
      'MiB of protocol logs and results of a project; past it logs end; ' +
      'invokes are 409 when the results alone reach it',
  },
  {
    ...DAYS,
    name: 'SESSION_DAYS',
    default: '90',
    description: 'days that ended sessions are kept; longer while anything else of them is',
  },
  {
    ...DAYS,
    name: 'SESSION_LOG_DAYS',
    default: '30',
    description: 'days that protocol logs of sessions are kept',
  },
  { ...DAYS, name: 'RECORDING_DAYS', default: '31', description: 'days that recordings are kept' },
  {
    ...DAYS,
    name: 'DOWNLOAD_DAYS',
    default: '30',
    description: 'days that files which pages downloaded are kept',
  },
  {
    ...DAYS,
    name: 'INVOCATION_DAYS',
    default: '90',
    description: 'days that ended invocations are kept',
  },
  {
    ...DAYS,
    name: 'BUILD_DAYS',
    default: '90',
    description: 'days that builds, and versions, are kept that nobody runs any more',
  },
  {
    ...DAYS,
    name: 'LOG_DAYS',
    default: '30',
    description: 'days that logs of invocations and builds are kept',
  },
  {
    ...DAYS,
    name: 'EVENT_DAYS',
    default: '30',
    description: 'days that events and their deliveries are kept',
  },
  {
    name: 'WEBHOOK_RATE',
    type: 'integer',
    range: [1, 1_000],
    default: '50',
    roles: CORE,
    description: 'deliveries a second to one webhook',
  },
  {
    name: 'WEBHOOK_ALLOW_CIDRS',
    type: 'networks',
    roles: HOOKS,
    description: 'private addresses that webhooks may reach, comma-separated',
  },
  {
    name: 'WEBHOOK_CA',
    type: 'file',
    roles: GATEWAY,
    description: "path of PEM certificates that endpoints may be signed by, beside the system's",
  },
  {
    name: 'WEBHOOK_DISABLE_AFTER',
    type: 'integer',
    range: [1, 8_760],
    default: '120',
    roles: CORE,
    description: 'hours of nothing but failure that disable a webhook',
  },
  {
    name: 'WEBHOOK_DISABLE_SILENCE',
    type: 'choice',
    range: ['on', 'off'],
    default: 'on',
    roles: CORE,
    description: 'off: a first failure after a day of silence may disable, too',
  },
  {
    name: 'SANDBOX',
    type: 'choice',
    range: ['auto', 'bwrap', 'landlock', 'none'],
    default: 'auto',
    roles: RUNNER,
    description: 'auto takes the first of bwrap and landlock that works; none contains nothing',
  },
  {
    name: 'ENGINE',
    type: 'choice',
    range: ['node', 'deno'],
    roles: RUNNER,
    description: 'what runs handlers; what runs the runner when absent',
  },
  {
    name: 'DENO_PATH',
    type: 'text',
    roles: RUNNER,
    description: 'path of Deno; found when absent',
  },
  {
    name: 'ISOLATION',
    type: 'choice',
    range: ['warm', 'fresh'],
    default: 'warm',
    roles: RUNNER,
    description:
      'of functions that do not say it: fresh takes a thread of its own for each invocation',
  },
  {
    name: 'CHROME',
    type: 'text',
    roles: RUNNER,
    description: 'path of a Chrome or Chromium; found when absent',
  },
  {
    ...SPARES,
    name: 'CHROME_SPARES',
    default: '2',
    description: 'browsers that wait, started, for an invocation',
  },
  { ...SPARES, name: 'SESSION_SPARES', default: '1', description: 'the same for a session' },
  {
    ...SPARES,
    name: 'HOST_SPARES',
    default: '1',
    description: 'function hosts that wait, started, while functions are used',
  },
  {
    ...AT_ONCE,
    name: 'INVOCATIONS_MAX',
    default: '4',
    description: 'invocations that a runner runs at once',
  },
  {
    ...AT_ONCE,
    name: 'SESSIONS_MAX',
    default: '25',
    description: 'sessions that a runner holds at once, beside those of invocations',
  },
  {
    name: 'BROWSER_MEMORY_MB',
    type: 'integer',
    range: [0, 1 << 20],
    default: '4096',
    roles: RUNNER,
    description: "MiB of memory that a session's browser may use before it is ended; 0: no limit",
  },
  {
    ...AT_ONCE,
    name: 'BUILDS_MAX',
    default: '1',
    description: 'builds that a runner runs at once',
  },
  {
    name: 'SESSION_GRACE_MS',
    type: 'integer',
    range: [0, 60_000],
    default: '3000',
    roles: RUNNER,
    description: 'for a client to come back after the last one has left',
  },
  {
    name: 'RUNNER_LISTEN',
    type: 'reachable',
    roles: RUNNER,
    description:
      "host:port at which gateways on other machines reach this runner's sessions; plain, " +
      'so private networks only',
  },
  {
    name: 'PROXY',
    type: 'proxy',
    roles: RUNNER,
    isSecret: true,
    description:
      'proxy of sessions that ask for a managed one: http://user:secret@host:3128, https: ' +
      'or socks5:',
  },
  {
    name: 'AD_LISTS',
    type: 'list',
    default: 'https://easylist.to/easylist/easylist.txt',
    roles: RUNNER,
    description: 'files and addresses of filter lists for blockAds, comma-separated',
  },
  {
    name: 'BROWSER_ALLOW_CIDRS',
    type: 'networks',
    roles: RUNNER,
    description:
      "private addresses, and this machine's own, that pages and handlers may reach, " +
      'comma-separated',
  },
] as const satisfies readonly Row[];

/** With the type of each value. */
export type Setting = (typeof TABLE)[number];

export const SETTINGS: readonly Row[] = TABLE;
