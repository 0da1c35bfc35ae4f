/**
 * Finds the Chrome to run. The system's own is preferred: it gets its security updates from the
 * distribution.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../../proto/common/log.ts';
import { isExecutable } from '../jail/prlimit.ts';

export type Engine = {
  /**
   * The shell needs a third of the time and memory of the full browser; it reveals HeadlessChrome
   * in more places.
   */
  kind: 'headless-shell' | 'chromium';
  program: string;
  /** The directory that the program needs around it. */
  home: string;
  /** In addition to the environment of every Chrome. */
  env: Record<string, string>;
};

/** No usable Chrome was found. The message names a command that installs one. */
export class ChromeNotFound extends Error {
  override readonly name = 'ChromeNotFound';
}

const INSTALL =
  'install one with `apt install chromium-headless-shell` (or chromium), ' +
  'or name yours in TABERN_CHROME';

/**
 * Best first. Debian's commands are shell wrappers that add flags and a Google API key: the program
 * itself is started.
 */
const SYSTEM = [
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/lib/chromium/chromium',
  '/usr/lib64/chromium-browser/headless_shell',
  '/usr/lib64/chromium-browser/chromium-browser',
  '/opt/google/chrome/chrome',
];
const WRAPPERS: Readonly<Record<string, string>> = {
  '/usr/bin/chromium-headless-shell': '/usr/lib/chromium/chromium-headless-shell',
  '/usr/bin/chromium': '/usr/lib/chromium/chromium',
  '/usr/bin/google-chrome': '/opt/google/chrome/chrome',
  '/opt/google/chrome/google-chrome': '/opt/google/chrome/chrome',
};

type FindOptions = {
  /** The operator's choice. */
  program?: string;
  /** Where the npm package's browser is unpacked once, when `system` has none. */
  cacheDir: string;
  log: Log;
  system?: readonly string[];
  /** The full browser uses unix sockets internally, which not every jail allows. */
  shellOnly?: boolean;
};

/** The engines of this machine, one of each kind at most, the first for invocations. */
export type Engines = { invocations: Engine; sessions: Engine; all: readonly Engine[] };

/**
 * Invocations use the shell where available, sessions the full browser, because people look at
 * those. Throws ChromeNotFound.
 */
export async function findEngines(options: FindOptions): Promise<Engines> {
  const { program, system = systemOf(options) } = options;
  const invocations = await findChrome(options);
  const others = program === undefined ? system.filter(isExecutable) : [];
  const found = await Promise.all(others.map(async (path) => engine(await realpath(path))));
  const full = [invocations, ...found].find(({ kind }) => kind === 'chromium');
  const sessions = full ?? invocations;
  const all = [...new Set([invocations, sessions])];
  return { invocations, sessions, all };
}

/** Throws ChromeNotFound. */
export async function findChrome(options: FindOptions): Promise<Engine> {
  const { program, cacheDir, log, system = systemOf(options), shellOnly = false } = options;
  if (program !== undefined) {
    if (!isExecutable(program)) throw new ChromeNotFound(`cannot run ${program}: ${INSTALL}`);
    const wanted = engine(await realpath(program));
    if (wanted.kind === 'headless-shell' || !shellOnly) return wanted;
    throw new ChromeNotFound(
      `landlock cannot hold ${program}: name a headless shell, or use bwrap`,
    );
  }
  const found = system.find(isExecutable);
  if (found !== undefined) return engine(await realpath(found));
  const unpacked = await unpackNpm(cacheDir, log);
  if (unpacked === undefined) throw new ChromeNotFound(`no Chrome here: ${INSTALL}`);
  log.warn('running the Chrome of the npm package, which lags behind security updates');
  return unpacked;
}

function systemOf({ shellOnly = false }: FindOptions): readonly string[] {
  return shellOnly ? SYSTEM.filter(isShell) : SYSTEM;
}

function isShell(path: string): boolean {
  return /headless[-_]shell$/.test(basename(path));
}

function engine(path: string): Engine {
  const program = WRAPPERS[path] ?? path;
  const kind = isShell(program) ? 'headless-shell' : 'chromium';
  return { kind, program, home: dirname(program), env: {} };
}

/** Ours: it takes 2 s on an idle machine. */
const UNPACK_TIMEOUT_MS = 120_000;
/**
 * Unpacks 200 MB into TMPDIR; the variable makes it unpack its NSS and expat too. In a process of
 * its own, because the package reads both from the environment. Its `args` are never used: they
 * disable web security.
 */
const UNPACK = "import('@sparticuz/chromium').then(({ default: it }) => it.executablePath())";
/**
 * Replaces the package's own, which names directories of AWS Lambda: the fonts of the system, where
 * present, and the package's. `relative` is beside this file.
 */
const FONTS_CONF = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>/usr/share/fonts</dir>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

async function unpackNpm(cacheDir: string, log: Log): Promise<Engine | undefined> {
  const manifest = npmManifest();
  if (manifest === undefined) return undefined;
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { version: string };
  const home = join(cacheDir, `chromium-${version}`);
  if (!existsSync(home)) {
    log.info({ version }, 'unpacking the Chrome of the npm package');
    await mkdir(cacheDir, { recursive: true });
    const part = await mkdtemp(`${home}.`);
    try {
      await promisify(execFile)(process.execPath, ['--input-type=module', '-e', UNPACK], {
        cwd: dirname(manifest),
        env: { TMPDIR: part, AWS_LAMBDA_JS_RUNTIME: 'nodejs24.x' },
        timeout: UNPACK_TIMEOUT_MS,
      });
      await writeFile(join(part, 'fonts/fonts.conf'), FONTS_CONF);
      await openToAll(part);
      // another runner may have been faster: both unpacked the same files
      await rename(part, home).catch(() => undefined);
    } finally {
      await rm(part, { recursive: true, force: true });
    }
  }
  const env = { LD_LIBRARY_PATH: join(home, 'al2023/lib'), FONTCONFIG_PATH: join(home, 'fonts') };
  return { kind: 'headless-shell', program: join(home, 'chromium'), home, env };
}

/**
 * The package unpacks for its own user; a jail has another uid. For data files the x bit is
 * irrelevant.
 */
async function openToAll(dir: string): Promise<void> {
  const names = ['', ...(await readdir(dir, { recursive: true }))];
  await Promise.all(names.map((name) => chmod(join(dir, name), 0o755)));
}

function npmManifest(): string | undefined {
  try {
    return findPackageJSON('@sparticuz/chromium', import.meta.url);
  } catch {
    return undefined; // not installed
  }
}
