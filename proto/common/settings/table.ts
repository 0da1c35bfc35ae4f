/**
 * Every setting. Its row defines the variable `TABERN_<name>`, the flag, the member of the settings
 * file, the help, the page "Configuration" of the guide, and the value's type in code.
 */
import { CONCURRENCY_MAX, QUEUE_MAX, QUOTA_MAX } from '../limits.ts';
import type { Role, Row, Unnamed } from './types.ts';

const CORE = ['core'] as const;
const GATEWAY = ['gateway'] as const;
const RUNNER = ['runner'] as const;
const TOOLS = ['tools'] as const;
const HTTP = ['gateway', 'tools'] as const;
const METERED = ['gateway', 'runner'] as const;
const HOOKS = ['core', 'gateway'] as const;
const KEYED = ['core', 'tools'] as const;
const DIALLERS = ['gateway', 'runner', 'tools'] as const;
const OPERATED = ['core', 'tools'] as const;
const SERVED = ['core', 'gateway'] as const;
const WORKED = ['core', 'runner'] as const;
const ALL = ['core', 'gateway', 'runner'] as const;
const ALL_AND_TOOLS = ['core', 'gateway', 'runner', 'tools'] as const;

/** Makes settings of one type. */
function settingsOf<Type extends Row['type']>(type: Type) {
  return <const Roles extends readonly Role[], const More extends Partial<Unnamed>>(
    roles: Roles,
    description: string,
    more: More = {} as More,
  ) => ({ type, roles, description, ...more });
}

const text = settingsOf('text');
const path = settingsOf('path');
const file = settingsOf('file');
const url = settingsOf('url');
const database = settingsOf('database');
const key = settingsOf('key');
const integer = settingsOf('integer');
const choice = settingsOf('choice');
const listen = settingsOf('listen');
const core = settingsOf('core');
const token = settingsOf('token');
const name = settingsOf('name');
const reachable = settingsOf('reachable');
const networks = settingsOf('networks');
const list = settingsOf('list');
const labels = settingsOf('labels');
const proxy = settingsOf('proxy');
const bucket = settingsOf('bucket');

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const quota = (description: string, value: string) =>
  integer(CORE, description, { range: [1, QUOTA_MAX], default: value });
/** Up to ten years: an operator who wants more keeps a backup. Ours. */
const days = (description: string, value: string) =>
  integer(CORE, description, { range: [1, 3_650], default: value });
const spares = (description: string, value: string) =>
  integer(RUNNER, description, { range: [0, 256], default: value });
const atOnce = (description: string, value: string) =>
  integer(RUNNER, description, { range: [1, 256], default: value });

const nextToken = (callers: string) =>
  token(CORE, `token that core also accepts of ${callers}, while it is changed`, {
    isSecret: true,
  });

const TABLE = {
  DATA: path(ALL_AND_TOOLS, 'the data directory: database, blobs, keys (0700)', {
    default: './tabern_data',
  }),
  HOST: text(HTTP, 'address that HTTP listens on', { default: '127.0.0.1' }),
  PORT: integer(HTTP, 'port that HTTP listens on; 0 selects a free one', {
    range: [0, 65_535],
    default: '4747',
  }),
  PUBLIC_URL: url(
    GATEWAY,
    'URL of the service for clients, when it is behind a proxy; links begin with it',
  ),
  TLS_CERT_FILE: text(GATEWAY, 'PEM file of the certificate and its chain; enables https and wss'),
  TLS_KEY_FILE: text(GATEWAY, 'PEM file of the private key; SIGHUP reloads both files'),
  CONSOLE: choice(GATEWAY, 'off removes the console, /console, with its API and its logins', {
    range: ['on', 'off'],
    default: 'on',
  }),
  METRICS_LISTEN: listen(METERED, 'host:port of GET /metrics; disabled when absent'),
  DRAIN_S: integer(
    METERED,
    'seconds that running work has to end after SIGTERM, while no new work is accepted; ' +
      '0: sessions end at once',
    { range: [0, 86_400], default: '0' },
  ),
  CORE_LISTEN: listen(
    CORE,
    'host:port at which roles on other machines reach core, with TLS; the socket file alone ' +
      'when absent',
  ),
  CORE_TLS_CERT_FILE: text(CORE, "PEM file of core's certificate and its chain"),
  CORE_TLS_KEY_FILE: text(CORE, "PEM file of core's private key; SIGHUP reloads both files"),
  CORE_CLIENT_CA_FILE: text(
    CORE,
    'PEM file of authorities; when set, only callers with a certificate of theirs reach ' +
      'TABERN_CORE_LISTEN',
  ),
  CORE: core(
    DIALLERS,
    'address of core, for a role that runs alone: host:port, or unix:<path>; ' +
      'unix:<data>/core.sock when absent',
  ),
  CORE_CA_FILE: text(
    DIALLERS,
    'PEM file of the authorities of the certificates of core and of runners; the system’s when ' +
      'absent',
  ),
  CORE_CLIENT_CERT_FILE: text(
    DIALLERS,
    "PEM file of this role's certificate: shown to core, and by a runner to gateways",
  ),
  CORE_CLIENT_KEY_FILE: text(
    DIALLERS,
    'PEM file of its private key; both files are read again every minute',
  ),
  BASE_URL: text(TOOLS, 'URL of the service, for commands; http://127.0.0.1:4747 when absent'),
  CONFIG: text(TOOLS, 'path of a settings file: JSON, such as {"port": 8080, "logLevel": "warn"}'),
  CACHE_DIR: text(
    TOOLS,
    "directory for the unpacked files of the single executable; systemd's CACHE_DIRECTORY, or " +
      '~/.cache/tabern/program, when absent',
  ),
  LOG_LEVEL: choice(ALL, 'lowest severity that is logged', {
    range: LEVELS,
    default: 'info',
  }),
  API_KEY: key(
    KEYED,
    'API key of the default project, 24 or more printable ASCII characters; generated at ' +
      'the first start when absent',
    { isSecret: true },
  ),
  OPERATOR_TOKEN: token(OPERATED, 'token of operators; a file in <data>/keys when absent', {
    isSecret: true,
  }),
  GATEWAY_TOKEN: token(SERVED, 'token of gateways; a file in <data>/keys when absent', {
    isSecret: true,
  }),
  RUNNER_TOKEN: token(WORKED, 'token of runners; a file in <data>/keys when absent', {
    isSecret: true,
  }),
  OPERATOR_TOKEN_NEXT: nextToken('operators'),
  GATEWAY_TOKEN_NEXT: nextToken('gateways'),
  RUNNER_TOKEN_NEXT: nextToken('runners'),
  SEARCH_URL: url(
    CORE,
    'address of a SearXNG with the format json, for POST /v1/search; 501 without',
  ),
  BLOBS: bucket(
    CORE,
    's3://bucket/prefix: recordings, downloads, contexts and other files are objects there; ' +
      'files in <data>/blobs when absent',
  ),
  BLOBS_ENDPOINT: url(
    CORE,
    'URL of the S3 server, as core, gateways and runners reach it; that of Amazon when absent',
  ),
  BLOBS_REGION: text(CORE, 'region of the bucket', { default: 'us-east-1' }),
  BLOBS_STYLE: choice(
    CORE,
    "path: the bucket is the first part of the path; host: of the server's name",
    { range: ['path', 'host'], default: 'path' },
  ),
  BLOBS_ACCESS_KEY_ID: text(CORE, 'access key for the bucket'),
  BLOBS_SECRET_ACCESS_KEY: text(CORE, 'secret of the access key for the bucket', {
    isSecret: true,
  }),
  DATABASE_URL: database(
    CORE,
    'URL of a PostgreSQL 15 or newer, for several cores; a file in <data> when absent',
    { isSecret: true },
  ),
  DATABASE_DIRECT_URL: database(
    CORE,
    'URL of that PostgreSQL past PgBouncer; DATABASE_URL when absent',
    { isSecret: true },
  ),
  DATABASE_CA_FILE: text(
    CORE,
    'PEM file of the authorities of the certificates of PostgreSQL and PgBouncer; when set, ' +
      'connections use TLS and verify it',
  ),
  DATABASE_POOLED: choice(CORE, 'on when DATABASE_URL is a PgBouncer in transaction mode', {
    range: ['on', 'off'],
    default: 'off',
  }),
  DURABILITY: choice(
    CORE,
    'full survives a power cut; normal may lose the last second, and is faster',
    { range: ['full', 'normal'], default: 'full' },
  ),
  LEASE_MS: integer(CORE, 'milliseconds after which a runner that does not report is away', {
    range: [1_000, 300_000],
    default: '15000',
  }),
  LOST_MS: integer(
    CORE,
    'milliseconds after which a runner that does not report is lost, and its work ends',
    { range: [1_000, 3_600_000], default: '300000' },
  ),
  SWEEP_MS: integer(CORE, 'milliseconds between searches for lost work', {
    range: [50, 60_000],
    default: '1000',
  }),
  CLOCK_SETTLE_MS: integer(
    CORE,
    "milliseconds of a difference after which the service adopts the machine's clock",
    { range: [1_000, 3_600_000], default: '600000' },
  ),
  KEY_PAIRS: integer(
    CORE,
    'key pairs that are generated in advance, so that a new context does not wait for its own',
    { range: [0, 1_000], default: '16' },
  ),
  CONCURRENCY: integer(CORE, 'concurrent sessions, and concurrent invocations, of a new project', {
    range: [1, CONCURRENCY_MAX],
    default: '25',
  }),
  QUEUE_MAX: integer(CORE, 'pending invocations, and pending builds, of a project; 429 beyond it', {
    range: [1, QUEUE_MAX],
    default: '1000',
  }),
  EXTENSIONS_MAX: integer(CORE, 'extensions of a project; 429 beyond it', {
    range: [1, 10_000],
    default: '100',
  }),
  CONTEXTS_MAX: quota(
    'contexts of a project, unless the operator sets another limit; 409 beyond it',
    '10000',
  ),
  CONTEXT_MIB: quota(
    'MiB of contexts of a project; beyond it a save is a warning in the log',
    '20480',
  ),
  DOWNLOAD_MIB: quota(
    'MiB of downloads of a project; beyond it a download is a warning in the log',
    '20480',
  ),
  RECORDING_MIB: quota(
    'MiB of recordings of a project; beyond it a recording stops with a warning',
    '20480',
  ),
  UPLOAD_MIB: quota('MiB of archives, bundles and extensions of a project; 409 beyond it', '10240'),
  LOG_MIB: quota(
    'MiB of protocol logs and results of a project; beyond it logs end, and invokes are ' +
      '409 when the results alone reach it',
    '10240',
  ),
  SESSION_DAYS: days(
    'days that ended sessions are kept; longer while their logs or files are kept',
    '90',
  ),
  SESSION_LOG_DAYS: days('days that protocol logs of sessions are kept', '30'),
  RECORDING_DAYS: days('days that recordings are kept', '31'),
  DOWNLOAD_DAYS: days('days that downloads of pages are kept', '30'),
  INVOCATION_DAYS: days('days that ended invocations are kept', '90'),
  BUILD_DAYS: days('days that builds, and versions that are no longer used, are kept', '90'),
  LOG_DAYS: days('days that logs of invocations and builds are kept', '30'),
  EVENT_DAYS: days('days that events and their deliveries are kept', '30'),
  AUDIT_DAYS: days('days that the audit of changes made in the console is kept', '365'),
  WEBHOOK_RATE: integer(CORE, 'deliveries per second of a webhook', {
    range: [1, 1_000],
    default: '50',
  }),
  WEBHOOK_ALLOW_CIDRS: networks(
    HOOKS,
    'private addresses that webhooks may reach, comma-separated',
  ),
  WEBHOOK_CA: file(
    GATEWAY,
    "path of a PEM file with certificate authorities of endpoints, in addition to the system's",
  ),
  WEBHOOK_DISABLE_AFTER: integer(
    CORE,
    'hours of failures without a success after which a webhook is disabled',
    {
      range: [1, 8_760],
      default: '120',
    },
  ),
  WEBHOOK_DISABLE_SILENCE: choice(
    CORE,
    'on: the first failure after a day without deliveries never disables a webhook',
    { range: ['on', 'off'], default: 'on' },
  ),
  SANDBOX: choice(
    RUNNER,
    'auto selects the first of bwrap and landlock that works; none disables the sandbox',
    { range: ['auto', 'bwrap', 'landlock', 'none'], default: 'auto' },
  ),
  ENGINE: choice(RUNNER, 'runtime of handlers; the runtime of the runner when absent', {
    range: ['node', 'deno'],
  }),
  DENO_PATH: text(RUNNER, 'path of Deno; found when absent'),
  ISOLATION: choice(
    RUNNER,
    'default isolation of functions: fresh starts a new thread for each invocation',
    { range: ['warm', 'fresh'], default: 'warm' },
  ),
  CHROME: text(RUNNER, 'path of a Chrome or Chromium; found when absent'),
  CHROME_SPARES: spares('browsers started in advance for invocations', '2'),
  SESSION_SPARES: spares('browsers started in advance for sessions', '1'),
  BURST_SPARES_MAX: integer(
    RUNNER,
    'most browsers kept ready for some minutes after a burst of sessions or invocations; as many ' +
      'as fit into a quarter of the memory when absent',
    { range: [0, 256] },
  ),
  HOST_SPARES: spares('function hosts started in advance while functions are in use', '1'),
  INVOCATIONS_MAX: atOnce('concurrent invocations of a runner', '4'),
  SESSIONS_MAX: atOnce(
    'concurrent sessions of a runner, in addition to those of invocations',
    '25',
  ),
  BROWSER_MEMORY_MB: integer(
    RUNNER,
    "MiB of memory that a session's browser may use before it is ended; 0: no limit",
    { range: [0, 1 << 20], default: '4096' },
  ),
  BROWSER_MEMORY_MAX_MB: integer(
    RUNNER,
    'MiB of memory of a browser whose session has the size large or xlarge, at most',
    { range: [1, 1 << 20], default: '16384' },
  ),
  BUILDS_MAX: atOnce('concurrent builds of a runner', '1'),
  SESSION_GRACE_MS: integer(
    RUNNER,
    'milliseconds between the last disconnect and the end of a session',
    {
      range: [0, 60_000],
      default: '3000',
    },
  ),
  SESSION_RETURN_MS: integer(
    RUNNER,
    'the same, after a connection that broke: it ended without a close frame',
    { range: [0, 600_000], default: '30000' },
  ),
  RUNNER_ID: name(
    RUNNER,
    'id of this runner, and a name in its certificate; a generated one in <data>/keys when absent',
  ),
  RUNNER_LABELS: labels(
    RUNNER,
    'labels of this runner for its operator, such as region=eu,disk=ssd; 20 at most',
  ),
  RUNNER_LISTEN: reachable(
    RUNNER,
    "host:port at which gateways on other machines reach this runner's sessions, with TLS by " +
      'the pair of TABERN_CORE_CLIENT_CERT_FILE; a socket file when absent',
  ),
  PROXY: proxy(
    RUNNER,
    'proxy of sessions that ask for a managed one: http://user:secret@host:3128, ' +
      'https: or socks5:',
    { isSecret: true },
  ),
  AD_LISTS: list(RUNNER, 'files and addresses of filter lists for blockAds, comma-separated', {
    default: 'https://easylist.to/easylist/easylist.txt',
  }),
  BROWSER_ALLOW_CIDRS: networks(
    RUNNER,
    "private addresses, and this machine's own, that pages and handlers may reach, " +
      'comma-separated',
  ),
} satisfies Readonly<Record<string, Unnamed>>;

type Table = typeof TABLE;

/** With the type of each value. */
export type Setting = { [Name in keyof Table]: Table[Name] & { name: Name } }[keyof Table];

export const SETTINGS: readonly Row[] = Object.entries(TABLE).map(([name, setting]) => ({
  name,
  ...setting,
}));
