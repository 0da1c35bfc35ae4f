/**
 * Programs that the whole suite needs on the machine. Missing ones are installed by root and in CI,
 * and named in one line elsewhere.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Debian's package and a command of it, or a file. */
const TOOLS: Readonly<Record<string, string>> = {
  bubblewrap: 'bwrap',
  chromium: 'chromium',
  'chromium-headless-shell': 'chromium-headless-shell',
  ffmpeg: 'ffprobe',
  // for the compared pictures of the console
  'fonts-liberation': '/var/lib/dpkg/info/fonts-liberation.list',
  // for the examples of the guide
  curl: 'curl',
  nginx: 'nginx',
  openssl: 'openssl',
  pgbouncer: 'pgbouncer',
  'postgresql-15': '/usr/lib/postgresql/15/bin/postgres',
  procps: 'pgrep',
  'python3-requests': '/var/lib/dpkg/info/python3-requests.list',
  'python3-venv': '/var/lib/dpkg/info/python3-venv.list',
  systemd: 'systemd-analyze',
  // an S3 server (test/support/servers/s3.ts)
  memcached: 'memcached',
  'swift-account': 'swift-account-server',
  'swift-container': 'swift-container-server',
  'swift-object': 'swift-object-server',
  'swift-proxy': 'swift-proxy-server',
};
/**
 * Of the bare machine (bare.sh), which root alone can make, of the image (image.ts) and of the
 * chart. runc, because crun refuses cgroups in hybrid mode.
 */
const TOOLS_OF_ROOT: Readonly<Record<string, string>> = {
  debootstrap: 'debootstrap',
  // for the chart of Kubernetes, which is rendered by Go's own templates
  'golang-go': 'go',
  'golang-github-masterminds-sprig-dev':
    '/var/lib/dpkg/info/golang-github-masterminds-sprig-dev.list',
  'golang-gopkg-yaml.v3-dev': '/var/lib/dpkg/info/golang-gopkg-yaml.v3-dev.list',
  podman: 'podman',
  'podman-compose': 'podman-compose',
  runc: 'runc',
};

type Machine = { path: string; isRoot: boolean; isCi: boolean };

const MACHINE: Machine = {
  path: process.env['PATH'] ?? '',
  isRoot: process.getuid?.() === 0,
  isCi: process.env['CI'] === 'true',
};

/** Debian packages without which some test fails. */
export function missingPackages({ path, isRoot, isCi } = MACHINE): string[] {
  const wanted = { ...TOOLS, ...(isRoot || isCi ? TOOLS_OF_ROOT : {}) };
  // where Debian installs programs for root
  const places = [...path.split(delimiter), '/usr/sbin', '/sbin'];
  return Object.entries(wanted)
    .filter(([, command]) => !isPresent(command, places))
    .map(([name]) => name);
}

/** The command that installs them. */
export function installLine(names: readonly string[], { isRoot } = MACHINE): string {
  const sudo = isRoot ? '' : 'sudo ';
  return `${sudo}apt-get install -y --no-install-recommends ${names.join(' ')}`;
}

/**
 * Whether all programs are present, after installing the missing ones where allowed. Prints each
 * step.
 */
export function ensureTools(machine = MACHINE): boolean {
  const missing = missingPackages(machine);
  if (missing.length === 0) return true;
  const line = installLine(missing, machine);
  if (!machine.isRoot && !machine.isCi) {
    console.log(`the tests need: ${line}`);
    return false;
  }
  console.log(line);
  const update = `${machine.isRoot ? '' : 'sudo '}apt-get update -q`;
  // runlevel 1: no daemon of a package is started
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  for (const command of [update, line]) {
    const { status } = spawnSync('sh', ['-c', command], { env, stdio: ['ignore', 2, 2] });
    if (status !== 0) console.log(`failed: ${command}`);
  }
  return missingPackages(machine).length === 0;
}

function isPresent(command: string, places: readonly string[]): boolean {
  if (command.startsWith('/')) return existsSync(command);
  return places.some((place) => isRunnable(join(place, command)));
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
