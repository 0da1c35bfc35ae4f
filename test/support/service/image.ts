/**
 * The container image of gateway/packaging/deploy, built by podman from the current sources. Its
 * base is a Debian of debootstrap, since a registry of images may be unreachable; images and layers
 * are kept in `.cache/image`. Needs root.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { registryEnv, shell } from '../clients/journey.ts';
import { tempDirectory } from '../temp.ts';
import { builtBinary } from './binary.ts';

const ROOT = join(import.meta.dirname, '../../..');
const DEBIAN = join(import.meta.dirname, 'debian.sh');
const CACHE = join(ROOT, '.cache/image');
export const BASE = 'localhost/tabern-test-base';
export const IMAGE = 'localhost/tabern-test';
/** Prefix of the containers of podman-compose. */
const PROJECT = 'tabern-test';
export const DOCKERFILE = join(ROOT, 'gateway/packaging/deploy/Dockerfile');
export const COMPOSE = join(ROOT, 'gateway/packaging/deploy/compose.yaml');

/** Without systemd; limits that a root without CAP_SYS_RESOURCE may set. */
const ENGINE = `[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
[containers]
default_ulimits = ["nofile=8192:8192", "nproc=8192:8192"]
`;
const STORAGE = `[storage]
driver = ""
graphroot = "${CACHE}/storage"
runroot = "${CACHE}/run"
`;

/** The service of compose.yaml, as far as the tests read it. */
export type ComposeService = {
  image: string;
  build: { context: string; dockerfile: string };
  ports: string[];
  volumes: string[];
  environment: string[];
  cap_drop: string[];
  security_opt: string[];
  read_only: boolean;
  tmpfs: string[];
  shm_size: string;
  restart: string;
  stop_grace_period: string;
  healthcheck: { interval: string; timeout: string; start_period: string; retries: number };
};

/** With no variable set. */
export function composeService(): ComposeService {
  const text = readFileSync(COMPOSE, 'utf8').replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1');
  const file = load(text) as { services: { tabern: ComposeService } };
  return file.services.tabern;
}

export type Image = AsyncDisposable & {
  /** The words of a podman command, for another program. */
  words(...words: readonly string[]): [string, ...string[]];
  /** Runs podman; returns its output, and throws when it fails. */
  podman(...words: readonly string[]): Promise<string>;
  /** Runs podman-compose with a copy of compose.yaml that publishes another port. */
  compose(port: number, ...words: readonly string[]): Promise<string>;
};

/** Builds IMAGE. The end of the scope removes its containers and volumes. */
export async function builtImage(): Promise<Image> {
  await using cleanup = new AsyncDisposableStack();
  const settings = cleanup.use(tempDirectory());
  mkdirSync(CACHE, { recursive: true });
  const engine = join(settings.path, 'containers.conf');
  const storage = join(settings.path, 'storage.conf');
  writeFileSync(engine, ENGINE);
  writeFileSync(storage, STORAGE);
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const env = [`CONTAINERS_CONF=${engine}`, `CONTAINERS_STORAGE_CONF=${storage}`];
  const called = (...more: readonly string[]): [string, ...string[]] => {
    const [first = 'env', ...rest] = [...sudo, 'env', ...env, ...more];
    return [first, ...rest];
  };
  const words: Image['words'] = (...more) => called('podman', ...more);
  const podman: Image['podman'] = (...more) => output(words(...more));
  const compose: Image['compose'] = (port, ...more) => {
    const file = join(settings.path, 'compose.yaml');
    writeFileSync(file, composed(port));
    return output(called('podman-compose', '-p', PROJECT, '-f', file, ...more));
  };
  cleanup.defer(async () => {
    await podman('rm', '--force', '--all', '--time', '0');
    await podman('volume', 'prune', '--force');
    await podman('network', 'prune', '--force');
  });

  const hasBase = (await podman('images', '--quiet', BASE)) !== '';
  if (!hasBase) await importBase(words('import', '-', BASE));
  await using binary = await builtBinary();
  const args = ['--build-arg', `BASE=${BASE}`, '--file', DOCKERFILE, '--tag', IMAGE];
  const how = ['--isolation', 'chroot', '--format', 'docker', '--layers', '--pull-never'];
  await podman('build', ...how, ...args, binary.path);
  await podman('image', 'prune', '--force'); // the image of the last run, 250 MB
  const kept = cleanup.move();
  return { words, podman, compose, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** compose.yaml with IMAGE, which is already built, and a free port of this machine. */
function composed(port: number): string {
  return readFileSync(COMPOSE, 'utf8')
    .replace(/^ {4}image: tabern\n {4}build:\n(?: {6}.*\n)+/m, `    image: ${IMAGE}\n`)
    .replace(/- (127\.0\.0\.1):\d+:/, `- $1:${port}:`);
}

async function importBase(command: readonly string[]): Promise<void> {
  const debian = await output([DEBIAN]);
  const script = 'dir=$1; shift; tar -C "$dir" --numeric-owner -c . | "$@"';
  await output(['bash', '-o', 'pipefail', '-c', script, 'base', debian, ...command]);
}

async function output(command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await shell(command, { cwd: '/', env: registryEnv() });
  if (code !== 0) throw new Error(`${command.join(' ')}: ${code}\n${stdout}\n${stderr}`);
  return stdout.trim();
}
