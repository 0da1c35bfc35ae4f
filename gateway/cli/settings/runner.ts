/** Settings of runners. */
import type { Role, Setting } from './settings.ts';

const RUNNER: readonly Role[] = ['runner'];

export const OF_RUNNERS: readonly Setting[] = [
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
