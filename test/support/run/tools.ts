/**
 * Programs that the whole suite needs of the machine. What is missing is installed where that is
 * expected, by root or in CI, and named in one line elsewhere.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Debian's package and a command of it. */
const TOOLS: Readonly<Record<string, string>> = {
  bubblewrap: 'bwrap',
  chromium: 'chromium',
  'chromium-headless-shell': 'chromium-headless-shell',
  ffmpeg: 'ffprobe',
};
/** Of the bare machine (bare.sh), which root alone can make. */
const TOOLS_OF_ROOT: Readonly<Record<string, string>> = { debootstrap: 'debootstrap' };

type Machine = { path: string; isRoot: boolean; isCi: boolean };

const MACHINE: Machine = {
  path: process.env['PATH'] ?? '',
  isRoot: process.getuid?.() === 0,
  isCi: process.env['CI'] === 'true',
};

/** Debian packages without which some test fails. */
export function missingPackages({ path, isRoot, isCi } = MACHINE): string[] {
  const wanted = { ...TOOLS, ...(isRoot || isCi ? TOOLS_OF_ROOT : {}) };
  // where Debian keeps what is root's
  const places = [...path.split(delimiter), '/usr/sbin', '/sbin'];
  return Object.entries(wanted)
    .filter(([, command]) => !places.some((place) => isRunnable(join(place, command))))
    .map(([name]) => name);
}

/** The command that installs them. */
export function installLine(names: readonly string[], { isRoot } = MACHINE): string {
  const sudo = isRoot ? '' : 'sudo ';
  return `${sudo}apt-get install -y --no-install-recommends ${names.join(' ')}`;
}

/** Whether everything is there, installed if need be. Prints what it does. */
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
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const command of [update, line]) {
    const { status } = spawnSync('sh', ['-c', command], { env, stdio: ['ignore', 2, 2] });
    if (status !== 0) console.log(`failed: ${command}`);
  }
  return missingPackages(machine).length === 0;
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
