/** The image's recipe, compose.yaml and the documents agree with one another and the settings. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { load } from 'js-yaml';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import {
  COMPOSE,
  type ComposeService,
  composeService,
  DOCKERFILE,
} from '../../support/service/image.ts';
import { tempDirectory } from '../../support/temp.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PAGES = ['gateway/packaging/deploy/README.md', 'gateway/web/docs/guide/deployment.md'];
/** SIGTERM drains for this long at most (proto/spec/rest.md 5). */
const DRAIN_SECONDS = 30;
const DEFAULT_PORT = must(
  SETTINGS.find(({ name }) => name === 'PORT')?.default,
  'the default port',
);
const KNOWN = new Set(SETTINGS.flatMap(({ name }) => [`TABERN_${name}`, `TABERN_${name}_FILE`]));

/** Sorted. The sandbox needs those that are `unconfined`. */
const SECURITY = [
  'apparmor=unconfined',
  'no-new-privileges',
  'seccomp=unconfined',
  'systempaths=unconfined',
].join();

const recipe = readFileSync(DOCKERFILE, 'utf8');
const test = suite('gateway/packaging/deploy');

/** The words of an instruction, with its continued lines. */
function instruction(name: string, text = recipe): string {
  const found = new RegExp(`^${name} ((?:.*\\\\\\n)*.*)$`, 'm').exec(text)?.[1];
  return must(found, name).replaceAll(/\\\n\s*/g, '');
}

function environmentOf(text: string): Record<string, string> {
  const pairs = instruction('ENV', text).matchAll(/(\w+)=(\S+)/g);
  return Object.fromEntries([...pairs].map(([, name = '', value = '']) => [name, value]));
}

/** What is wrong with a service and a recipe, one line each. */
function problemsOf(service: ComposeService, text = recipe): string[] {
  const variables = [...Object.keys(environmentOf(text)), ...service.environment];
  const unknown = variables.filter((name) => !KNOWN.has(name)).map((name) => `${name} is unknown`);
  const volume = instruction('VOLUME', text);
  const checks: [boolean, string][] = [
    [service.ports.join() === `127.0.0.1:${DEFAULT_PORT}:${DEFAULT_PORT}`, 'port'],
    [instruction('EXPOSE', text) === DEFAULT_PORT, 'exposed port'],
    [instruction('HEALTHCHECK', text).includes(`\${TABERN_PORT:-${DEFAULT_PORT}}`), 'health'],
    [service.volumes.join() === `data:${volume}`, 'volume'],
    [environmentOf(text)['TABERN_DATA'] === volume, 'data directory'],
    [service.cap_drop?.join() === 'ALL', 'capabilities'],
    [[...(service.security_opt ?? [])].sort().join() === SECURITY, 'security options'],
    [service.read_only === true, 'root file system'],
    [service.tmpfs?.join() === '/tmp', 'tmpfs'],
    [Number.parseInt(service.stop_grace_period, 10) > DRAIN_SECONDS, 'grace period'],
    [instruction('STOPSIGNAL', text) === 'SIGTERM', 'signal'],
    [instruction('USER', text) === 'tabern', 'user'],
    [Array.isArray(JSON.parse(instruction('ENTRYPOINT', text))), 'entry point'],
  ];
  return [...unknown, ...checks.filter(([isRight]) => !isRight).map(([, what]) => `wrong ${what}`)];
}

test('compose.yaml and the recipe agree with the settings', () => {
  assert.equal(problemsOf(composeService()), []);
});

test('compose.yaml builds the recipe, from the directory of the executable', () => {
  const { build } = composeService();
  const context = resolve(dirname(COMPOSE), build.context);
  assert.is(context, join(ROOT, 'dist'));
  assert.is(resolve(context, build.dockerfile), DOCKERFILE);
  assert.is(instruction('COPY').split(' ').at(-2), 'tabern');
});

test('the recipe is based on Debian, unless an argument names another base', () => {
  assert.is(instruction('ARG'), 'BASE=debian:bookworm-slim');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: of the recipe
  assert.is(instruction('FROM'), '${BASE}');
});

for (const [what, change, problem] of [
  ['an unknown variable', { environment: ['TABERN_DATAS'] }, 'TABERN_DATAS is unknown'],
  ['another port', { ports: ['127.0.0.1:80:4748'] }, 'wrong port'],
  ['a port for everyone', { ports: [`${DEFAULT_PORT}:${DEFAULT_PORT}`] }, 'wrong port'],
  ['another directory', { volumes: ['data:/var/lib/tabern'] }, 'wrong volume'],
  ['capabilities', { cap_drop: undefined }, 'wrong capabilities'],
  ['some capabilities', { cap_drop: ['NET_RAW'] }, 'wrong capabilities'],
  [
    'new privileges',
    { security_opt: SECURITY.split(',').filter((one) => one !== 'no-new-privileges') },
    'wrong security options',
  ],
  ['another option', { security_opt: [...SECURITY.split(','), 'x'] }, 'wrong security options'],
  ['a writable root', { read_only: false }, 'wrong root file system'],
  ['no tmpfs', { tmpfs: undefined }, 'wrong tmpfs'],
  ['another tmpfs', { tmpfs: ['/tmp', '/data'] }, 'wrong tmpfs'],
  ['a short grace period', { stop_grace_period: '10s' }, 'wrong grace period'],
] as const) {
  test(`the check finds ${what} in compose.yaml`, () => {
    const service = {
      ...composeService(),
      ...(change as unknown as Partial<ComposeService>),
    } as ComposeService;
    assert.equal(problemsOf(service), [problem]);
  });
}

for (const [what, from, to, problem] of [
  ['root', 'USER tabern', 'USER root', 'wrong user'],
  ['another signal', 'STOPSIGNAL SIGTERM', 'STOPSIGNAL SIGKILL', 'wrong signal'],
  ['a shell', 'ENTRYPOINT ["tini", "--", "tabern"]', 'ENTRYPOINT "tabern"', 'wrong entry point'],
  ['another port', 'EXPOSE 4747', 'EXPOSE 80', 'wrong exposed port'],
  ['an unknown variable', 'TABERN_HOST=', 'TABERN_HOSTS=', 'TABERN_HOSTS is unknown'],
  ['another data directory', 'TABERN_DATA=/data', 'TABERN_DATA=/x', 'wrong data directory'],
] as const) {
  test(`the check finds ${what} in the recipe`, () => {
    const changed = recipe.replace(from, to);
    assert.is.not(changed, recipe);
    assert.equal(problemsOf(composeService(), changed), [problem]);
  });
}

test('the documents run the image with the options of compose.yaml', () => {
  const { security_opt: security, stop_grace_period: grace, cap_drop: dropped } = composeService();
  for (const page of PAGES) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const command = /docker run -d[^`]*?\btabern\n/.exec(text)?.[0] ?? '';
    for (const option of security) assert.match(command, `--security-opt ${option}`, page);
    for (const one of dropped) assert.match(command, `--cap-drop ${one}`, page);
    assert.match(command, `--stop-timeout ${Number.parseInt(grace, 10)} `, page);
    assert.match(command, `-p 127.0.0.1:${DEFAULT_PORT}:${DEFAULT_PORT} -v tabern:/data`, page);
    assert.match(command, '--read-only --tmpfs /tmp', page);
    assert.match(command, `--shm-size ${composeService().shm_size}`, page);
  }
});

test('compose.yaml has one service, with a restart and a health check', () => {
  const file = load(readFileSync(COMPOSE, 'utf8')) as Record<string, Record<string, unknown>>;
  assert.equal(Object.keys(file), ['services', 'volumes']);
  assert.equal(Object.keys(file['services'] ?? {}), ['tabern']);
  assert.equal(Object.keys(file['volumes'] ?? {}), ['data']);
  const { restart, healthcheck } = composeService();
  assert.is(restart, 'unless-stopped');
  assert.is(healthcheck.start_period, /--start-period=(\S+)/.exec(recipe)?.[1]);
  assert.is(healthcheck.timeout, /--timeout=(\S+)/.exec(recipe)?.[1]);
});

const SPLIT = join(dirname(COMPOSE), 'compose.split.yaml');

type SplitService = {
  command: string[];
  environment: Record<string, string>;
  volumes: (string | { target: string; volume: { subpath: string } })[];
};

function splitServices(): Record<string, SplitService> {
  const { services } = load(readFileSync(SPLIT, 'utf8')) as {
    services: Record<string, SplitService>;
  };
  for (const service of Object.values(services)) {
    // a merge key of YAML is a member for the parser
    const { '<<': shared = {}, ...own } = service.environment ?? {};
    service.environment = { ...(shared as object), ...own };
  }
  return services;
}

test('compose.split.yaml starts each role with known settings, and its own secrets alone', () => {
  const services = splitServices();
  for (const role of ['core', 'gateway', 'runner']) {
    const { command, environment, volumes } = must(services[role], role);
    assert.match(command.join(' '), new RegExp(`(^|tabern )${role}$`));
    assert.equal(
      Object.keys(environment).filter((name) => !KNOWN.has(name)),
      [],
    );
    const places = ['/certs/role', '/secrets'].map((target) => [target, role]);
    assert.equal(partsOf(volumes).sort(), places);
    assert.not.match(JSON.stringify(volumes), /"(certs|secrets):/, 'the whole volume');
  }
  for (const service of ['postgres', 's3']) {
    assert.equal(partsOf(must(services[service], service).volumes), [['/secrets', service]]);
  }
});

/** Where directories of volumes are mounted, and their names. */
function partsOf(volumes: SplitService['volumes']): [target: string, subpath: string][] {
  const parts = volumes.filter((one) => typeof one === 'object');
  return parts.map(({ target, volume }) => [target, volume.subpath]);
}

test('compose.split.yaml first makes each file that a service reads, once', async () => {
  await using dir = tempDirectory();
  const services = splitServices();
  const script = must(services['secrets']?.command[0], 'the script')
    .replaceAll('$$', '$')
    .replaceAll('/secrets', `${dir.path}/secrets`)
    .replaceAll('/certs', `${dir.path}/certs`);
  mkdirSync(join(dir.path, 'secrets'));
  mkdirSync(join(dir.path, 'certs'));
  const tabern = `tabern() { '${process.execPath}' '${join(ROOT, 'gateway/bin.ts')}' "$@"; }`;
  const env = { PATH: process.env['PATH'] ?? '' };
  const start = () =>
    execFileSync('bash', ['-euc', `${tabern}\n${script}`], { env, cwd: dir.path });
  start();
  const contents = () => {
    const files = readdirSync(dir.path, { recursive: true, withFileTypes: true });
    const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
    return Object.fromEntries(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  };
  const made = contents();
  for (const role of ['core', 'gateway', 'runner']) {
    const { environment } = must(services[role], role);
    for (const path of Object.values(environment).filter((one) => /^\/(secrets|certs)/.test(one))) {
      const own = path.replace(/^\/(certs\/role|secrets)/, (place) =>
        place === '/secrets' ? `/secrets/${role}` : `/certs/${role}`,
      );
      assert.ok(made[`${dir.path}${own}`], `${role}: ${path}`);
    }
  }
  assert.match(
    must(made[`${dir.path}/secrets/core/database-url`], 'the URL'),
    /^postgres:\/\/tabern:[\w-]{43}@postgres:/,
  );
  const filesOf = (name: string) => readdirSync(join(dir.path, 'secrets', name));
  assert.equal(['gateway', 'runner', 'postgres', 's3'].map(filesOf), [
    ['gateway-token'],
    ['runner-token'],
    ['database-password'],
    ['s3-key', 's3-secret'],
  ]);
  const pairOf = (role: string) =>
    new X509Certificate(must(made[`${dir.path}/certs/${role}/tls.crt`], role));
  assert.ok(pairOf('core').checkHost('core'));
  const command = must(services['runner']?.command[0], 'the command');
  const id = /TABERN_RUNNER_ID=(\S+)/.exec(command)?.[1]?.replace('$$HOSTNAME', '7ad64c60ee07');
  assert.ok(pairOf('runner').checkHost(must(id, 'the id')), id);
  start();
  assert.equal(contents(), made, 'the second start changes nothing');
});

test.run();
