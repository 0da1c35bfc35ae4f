/**
 * The chart for Kubernetes: rendered as Helm does, accepted by the schemas of Kubernetes, KEDA and
 * the Prometheus operator; its settings, ports and paths are the program's.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import { parsed } from '../../../proto/common/settings/types.ts';
import {
  BLOCKED_IPV4,
  BLOCKED_IPV6,
  GLOBAL_IPV6,
} from '../../../proto/network/public-addresses.ts';
import {
  CHART,
  type Manifest,
  openRenderer,
  type Rendered,
  refusalsOf,
  refusedValues,
} from '../../support/service/helm.ts';

const chart = suite('gateway/packaging/helm');

/** Where an ordinary user lacks Go, the chart is rendered elsewhere. */
const MUST_RUN = process.getuid?.() === 0 || process.env['CI'] === 'true';
const hasGo = MUST_RUN || spawnSync('go', ['version']).status === 0;
const KNOWN = new Set(SETTINGS.flatMap(({ name }) => [`TABERN_${name}`, `TABERN_${name}_FILE`]));
const SHARED = {
  publicUrl: 'https://tabern.example.com',
  database: { secret: 'tabern-database', hasDirectUrl: true, isPooled: true },
  blobs: { url: 's3://bucket/tabern', endpoint: 'https://s3.example.com', secret: 'tabern-s3' },
  core: { replicas: 2, env: { TABERN_CONCURRENCY: '100', TABERN_LOST_MS: 3_600_000 } },
  gateway: {
    autoscaling: { enabled: true },
    ingress: { enabled: true, host: 'tabern.example.com', className: 'nginx', tlsSecret: 'tls' },
    nodeSelector: { role: 'web' },
  },
  runner: {
    autoscaling: { enabled: true },
    sandbox: 'landlock',
    labels: 'region=eu',
    tolerations: [{ key: 'browsers', operator: 'Exists', effect: 'NoSchedule' }],
  },
  image: { pullSecrets: [{ name: 'registry' }], tag: '1' },
  monitoring: { podMonitor: true, alerts: true, dashboard: true, labels: { release: 'prom' } },
};

/** A test that renders. */
function rendered(name: string, run: () => void | Promise<void>): void {
  chart(name, () => {
    if (hasGo) return run();
    console.log('not rendered: golang-go and golang-github-masterminds-sprig-dev are missing');
  });
}

type Container = {
  name: string;
  args: string[];
  env: { name: string; value?: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
} & Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', { httpGet: object }>;
type Pod = {
  containers: [Container];
  volumes: { name: string; secret?: { secretName: string; items?: { key: string }[] } }[];
  terminationGracePeriodSeconds: number;
  securityContext: { seccompProfile: { type: string } };
};

let renderer: ReturnType<typeof openRenderer> | undefined;
function render(values: object = {}, release?: { name: string; namespace: string }): Rendered {
  renderer ??= openRenderer();
  return renderer.render(values, release);
}

function found(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const one = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  return must(one, `${kind} ${name}`);
}

function podOf(manifests: readonly Manifest[], role: string): Pod {
  const kind = role === 'gateway' ? 'Deployment' : 'StatefulSet';
  const { spec } = found(manifests, kind, `tabern-${role}`) as unknown as {
    spec: { template: { spec: Pod } };
  };
  return spec.template.spec;
}

rendered('a process is alive by itself, whatever it waits for', () => {
  const { manifests } = render(SHARED);
  for (const role of ['core', 'gateway', 'runner']) {
    const [{ startupProbe, livenessProbe, readinessProbe }] = podOf(manifests, role).containers;
    const own = { path: '/healthz', port: 'metrics' };
    equal([startupProbe.httpGet, livenessProbe.httpGet], [own, own], role);
    const port = role === 'gateway' ? 'http' : 'metrics';
    equal(readinessProbe.httpGet, { path: '/readyz', port }, role);
  }
});

for (const [name, values] of Object.entries({ 'one core with SQLite': {}, 'the whole': SHARED })) {
  rendered(`Kubernetes accepts ${name}`, async () => {
    const { manifests, error } = render(values);
    is(error, '');
    equal(await refusalsOf(manifests), []);
  });

  rendered(`settings, ports and secrets of ${name} exist`, () => {
    const { manifests } = render(values);
    for (const role of ['core', 'gateway', 'runner']) {
      const pod = podOf(manifests, role);
      const [container] = pod.containers;
      equal(container.args, [role]);
      const names = container.env.map(({ name }) => name).filter((one) => one !== 'POD_NAME');
      equal(
        names.filter((one) => !KNOWN.has(one)),
        [],
        `settings of ${role}`,
      );
      is(new Set(names).size, names.length, 'each once');
      equal(problemsOfFiles(pod), []);
      const listens = container.env.filter(({ name }) => name.endsWith('_LISTEN'));
      const open = container.ports.map(({ containerPort }) => containerPort);
      for (const { value = '' } of listens) ok(open.includes(Number(value.split(':').at(-1))));
    }
  });
}

/** Files that settings name and no volume has. */
function problemsOfFiles({ containers: [container], volumes }: Pod): string[] {
  const files = container.env.filter(({ name }) => name.endsWith('_FILE'));
  return files.flatMap(({ name, value = '' }) => {
    const mount = container.volumeMounts.find(({ mountPath }) => value.startsWith(`${mountPath}/`));
    const volume = volumes.find((one) => one.name === mount?.name)?.secret;
    const key = value.split('/').at(-1) ?? '';
    const isThere = volume && (!volume.items || volume.items.some((item) => item.key === key));
    return isThere ? [] : [`${name}: ${value}`];
  });
}

rendered(
  'the network policy of runners allows the public addresses of the egress proxy only',
  () => {
    const allowCidrs = ['10.1.0.0/16', '::/0'];
    const { manifests } = render({ networkPolicy: { allowCidrs } });
    type Policy = { spec: { egress: { to: { ipBlock?: object }[] }[] } };
    const { spec } = found(manifests, 'NetworkPolicy', 'tabern-runner') as unknown as Policy;
    const blocks = spec.egress.flatMap(({ to }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
    equal(blocks, [
      { cidr: '0.0.0.0/0', except: BLOCKED_IPV4 },
      { cidr: GLOBAL_IPV6, except: BLOCKED_IPV6 },
      ...allowCidrs.map((cidr) => ({ cidr })),
    ]);
  },
);

rendered('metrics are for the namespace of Prometheus only, and gateways for everybody', () => {
  const monitoringNamespace = { 'kubernetes.io/metadata.name': 'watch' };
  const { manifests } = render({ networkPolicy: { monitoringNamespace } });
  type Rule = { from?: object[]; ports: { port: string }[] };
  for (const role of ['core', 'gateway', 'runner']) {
    const policy = found(manifests, 'NetworkPolicy', `tabern-${role}`);
    const { ingress } = policy['spec'] as { ingress: Rule[] };
    const rulesOf = (port: string) =>
      ingress.filter(({ ports }) => ports.some((one) => one.port === port));
    const froms = rulesOf('metrics').map(({ from }) => from);
    equal(froms, [[{ namespaceSelector: { matchLabels: monitoringNamespace } }]], role);
    if (role === 'gateway') equal(rulesOf('http'), [{ ports: [{ port: 'http' }] }]);
  }
});

rendered('the check finds an unknown member, a wrong type and a missing one', async () => {
  const { manifests } = render();
  const service = structuredClone(found(manifests, 'Service', 'tabern'));
  const spec = service['spec'] as Record<string, unknown>;
  for (const [change, refusal] of [
    [{ ...spec, selectors: {} }, /selectors/],
    [{ ...spec, ports: [{ port: 'http' }] }, /port must be integer/],
    [{ ...spec, ports: [{ name: 'http' }] }, /port/],
  ] as const) {
    match((await refusalsOf([{ ...service, spec: change }])).join('\n'), refusal);
  }
});

rendered('no role gets a token of another', () => {
  const { manifests } = render(SHARED);
  const keysOf = (role: string) => {
    const tokens = podOf(manifests, role).volumes.find(({ name }) => name === 'tokens');
    return must(tokens?.secret?.items, 'items').map(({ key }) => key);
  };
  equal(keysOf('gateway'), ['gateway-token']);
  equal(keysOf('runner'), ['runner-token']);
});

rendered('a runner has the time to drain, and only Landlock does without exceptions', () => {
  const usual = podOf(render({ runner: { drainSeconds: 600 } }).manifests, 'runner');
  is(usual.terminationGracePeriodSeconds, 700);
  is(usual.containers[0].env.find(({ name }) => name === 'TABERN_DRAIN_S')?.value, '600');
  is(usual.securityContext.seccompProfile.type, 'Unconfined');
  const walled = podOf(render(SHARED).manifests, 'runner');
  is(walled.securityContext.seccompProfile.type, 'RuntimeDefault');
  ok(!JSON.stringify(walled).includes('Unmasked'));
});

for (const [what, values, sentence] of [
  [
    'two cores on SQLite',
    { core: { replicas: 2 } },
    /core\.replicas above 1 needs database\.secret/,
  ],
  [
    'two cores with files',
    { core: { replicas: 2 }, database: { secret: 'db' } },
    /needs database\.secret and blobs\.url/,
  ],
  ['a bucket without keys', { blobs: { url: 's3://bucket' } }, /blobs\.url needs blobs\.secret/],
  [
    'an Ingress without a host',
    { gateway: { ingress: { enabled: true } } },
    /ingress\.host is missing/,
  ],
  [
    'an Ingress whose links begin with http',
    { gateway: { ingress: { enabled: true, host: 'a.example' } } },
    /gateway\.ingress needs publicUrl/,
  ],
  [
    'keys of no bucket',
    { blobs: { secret: 's3' } },
    /blobs\.secret and blobs\.endpoint need blobs\.url/,
  ],
  ['a pooler of no database', { database: { isPooled: true } }, /need database\.secret/],
  [
    'a pooler alone',
    { database: { secret: 'db', isPooled: true } },
    /isPooled needs database\.hasDirectUrl/,
  ],
  [
    'fewer runners at most than at least',
    { runner: { autoscaling: { enabled: true, min: 30 } } },
    /runner\.autoscaling\.min is above runner\.autoscaling\.max/,
  ],
  [
    'a part of no CPU',
    { gateway: { autoscaling: { enabled: true }, resources: { requests: { cpu: null } } } },
    /needs gateway\.resources\.requests\.cpu/,
  ],
  [
    'a setting of the chart',
    { runner: { env: { TABERN_SESSIONS_MAX: 5 } } },
    /runner\.env\.TABERN_SESSIONS_MAX: the chart sets it/,
  ],
  [
    'a port that no probe knows',
    { gateway: { env: { TABERN_PORT: 80 } } },
    /gateway\.env\.TABERN_PORT/,
  ],
  [
    'names of runners that are too long',
    { clusterDomain: `${'a'.repeat(60)}.${'b'.repeat(40)}` },
    /a runner has at most 128 characters/,
  ],
] as const) {
  rendered(`${what}: a sentence that names the value`, () => {
    const { manifests, error } = render(values);
    equal(manifests, []);
    match(error, sentence);
  });
}

rendered('values that are left empty, as when all lines below them are comments', async () => {
  const none = { env: null, nodeSelector: null, tolerations: null };
  const { manifests, error } = render({
    image: { pullSecrets: null },
    core: none,
    gateway: { ...none, service: { annotations: null }, ingress: { annotations: null } },
    runner: { ...none, labels: null },
    monitoring: { labels: null },
  });
  equal(error, '');
  equal(await refusalsOf(manifests), []);
});

chart('the schema of values accepts its own', () => {
  equal(refusedValues({}), []);
  equal(refusedValues(SHARED), []);
  // YAML of Helm reads them as true and false
  const text = readFileSync(join(CHART, 'values.yaml'), 'utf8');
  equal(text.match(/: *(on|off|yes|no|y|n) *$/gim), null);
});

for (const [values, sentence] of [
  [{ gateways: {} }, /additional/],
  [{ core: { replicas: 0 } }, /core\.replicas: must be >= 1/],
  [{ core: { replicas: null } }, /core: must have required property 'replicas'/],
  [{ image: null }, /required property 'image'/],
  [{ image: { repository: 'registry.example.com/tabern:1' } }, /image\.repository/],
  [{ image: { repository: 'https://registry.example.com/tabern' } }, /image\.repository/],
  [{ image: { pullSecrets: ['registry'] } }, /image\.pullSecrets\.0: must be object/],
  [{ publicUrl: 'tabern.example.com' }, /publicUrl/],
  [{ secrets: { core: 'core tls' } }, /secrets\.core/],
  [{ database: { secret: 'postgres://user:password@host/tabern' } }, /database\.secret/],
  [{ database: { isPooled: 'on' } }, /database\.isPooled: must be boolean/],
  [{ blobs: { url: 'https://bucket' } }, /blobs\.url/],
  [{ blobs: { endpoint: 's3.example.com' } }, /blobs\.endpoint/],
  [{ core: { env: { TABERN_CONSOLE: false } } }, /core\.env\.TABERN_CONSOLE/],
  [{ core: { env: { TABERN_CORE: ['a'] } } }, /core\.env\.TABERN_CORE/],
  [{ core: { env: { 'TABERN-CORE': 'a' } } }, /core\.env/],
  [{ core: { volume: { size: '50GB' } } }, /core\.volume\.size/],
  [{ core: { volume: { size: '' } } }, /core\.volume\.size/],
  [{ core: { resources: { request: {} } } }, /core\.resources: must NOT have additional/],
  [{ core: { resources: { limits: { memory: '2 GiB' } } } }, /core\.resources\.limits\.memory/],
  [{ core: { nodeSelector: { disk: true } } }, /core\.nodeSelector\.disk: must be string/],
  [{ core: { tolerations: ['browsers'] } }, /core\.tolerations\.0: must be object/],
  [{ core: { tolerations: [{ key: 'a', value: 1 }] } }, /core\.tolerations\.0\.value/],
  [{ core: { tolerations: [{ effect: 'NoSchedule' }] } }, /core\.tolerations\.0/],
  [{ gateway: { ingress: { host: 'tabern.example.com:443' } } }, /gateway\.ingress\.host/],
  [{ gateway: { ingress: { annotations: { timeout: 60 } } } }, /annotations\.timeout: must be st/],
  [{ gateway: { service: { type: 'ExternalName' } } }, /gateway\.service\.type/],
  [{ runner: { sandbox: 'none' } }, /runner\.sandbox/],
  [{ runner: { sessions: '25' } }, /runner\.sessions: must be integer/],
  [{ runner: { labels: { region: 'eu' } } }, /runner\.labels: must be string/],
  [{ runner: { autoscaling: { prometheus: '' } } }, /runner\.autoscaling\.prometheus/],
  [{ networkPolicy: { allowCidrs: ['10.1.0.5'] } }, /networkPolicy\.allowCidrs\.0/],
  [
    { networkPolicy: { monitoringNamespace: { 'kubernetes.io/metadata.name': null } } },
    /networkPolicy\.monitoringNamespace/,
  ],
  [{ monitoring: { labels: { release: 1 } } }, /monitoring\.labels\.release/],
] as const) {
  chart(`the schema refuses ${JSON.stringify(values)}`, () => {
    match(refusedValues(values).join('\n'), sentence);
  });
}

/** A setting, the value of the chart that becomes it, and texts of both kinds. */
const TEXTS: readonly [setting: string, value: (text: string) => object, texts: string[]][] = [
  [
    'BLOBS',
    (url) => ({ blobs: { url } }),
    ['s3://bucket', 's3://bucket/a/b_c/', 's3://b', 's3://b.ucket', 's3://bucket/a//b', 's3://B-u'],
  ],
  [
    'PUBLIC_URL',
    (publicUrl) => ({ publicUrl }),
    ['https://a.example', 'http://a:1/b/', 'https://a?b', 'https://a#b', 'https://', 'ftp://a'],
  ],
  [
    'RUNNER_LABELS',
    (labels) => ({ runner: { labels } }),
    ['a=b', 'region=eu, disk=ssd', 'a', 'a=b=c', 'a=b;c=d', 'a=', `a=${'b'.repeat(64)}`],
  ],
  [
    'BROWSER_ALLOW_CIDRS',
    (cidr) => ({ networkPolicy: { allowCidrs: [cidr] } }),
    ['10.0.0.0/8', '10.0.0.0/33', 'fd00::/8', '::/0', 'fd00::/129', 'a/8', '10.0.0/8'],
  ],
];

for (const [name, valueWith, texts] of TEXTS) {
  chart(`the schema and TABERN_${name} accept the same texts`, () => {
    const row = must(
      SETTINGS.find((one) => one.name === name),
      name,
    );
    const isAccepted = (text: string) => {
      try {
        parsed(row, text);
        return true;
      } catch {
        return false;
      }
    };
    const bySchema = texts.filter((text) => refusedValues(valueWith(text)).length === 0);
    equal(bySchema, texts.filter(isAccepted));
    ok(bySchema.length > 0 && bySchema.length < texts.length);
  });
}

chart('the schema has the ranges of the program', () => {
  type Schema = { properties: Record<string, { properties: Record<string, object> }> };
  const text = readFileSync(join(CHART, 'values.schema.json'), 'utf8');
  const { properties } = JSON.parse(text) as Schema;
  const partOf = (group: string, name: string) => properties[group]?.properties[name];
  const rangeOf = (name: string) => {
    const row = SETTINGS.find((one) => one.name === name);
    return row !== undefined && 'range' in row ? row.range : [];
  };
  for (const [value, setting] of [
    ['sessions', 'SESSIONS_MAX'],
    ['invocations', 'INVOCATIONS_MAX'],
    ['drainSeconds', 'DRAIN_S'],
  ] as const) {
    const [minimum, maximum] = rangeOf(setting);
    equal(partOf('runner', value), { type: 'integer', minimum, maximum }, value);
  }
  equal(partOf('blobs', 'style'), { enum: rangeOf('BLOBS_STYLE') });
  const walls = rangeOf('SANDBOX').filter((one) => one !== 'none');
  equal(partOf('runner', 'sandbox'), { enum: walls });
});

rendered('a number is written out, and a drain of gateways has its time', () => {
  const { manifests } = render({ ...SHARED, gateway: { env: { TABERN_DRAIN_S: 600 } } });
  const textOf = (role: string, setting: string) =>
    podOf(manifests, role).containers[0].env.find(({ name }) => name === setting)?.value;
  is(textOf('core', 'TABERN_LOST_MS'), '3600000');
  is(textOf('core', 'TABERN_CONCURRENCY'), '100');
  is(textOf('core', 'TABERN_DATABASE_POOLED'), 'on');
  is(textOf('gateway', 'TABERN_DRAIN_S'), '600');
  is(podOf(manifests, 'gateway').terminationGracePeriodSeconds, 660);
  is(podOf(render().manifests, 'gateway').terminationGracePeriodSeconds, 60);
});

rendered('a release with dots has names that services may have', () => {
  const { manifests, error } = render({}, { name: 'web.1', namespace: 'browsers' });
  is(error, '');
  for (const { metadata } of manifests) match(metadata.name, /^web-1-tabern(-\w+)?$/);
});

rendered("the guide's values and secrets are the chart's, and so is its query for KEDA", () => {
  const guide = readFileSync(join(CHART, '../../../web/docs/guide/deployment.md'), 'utf8');
  const values = must(valuesOf(guide), 'values');
  ok(Object.keys(values).length > 5);
  const { manifests, error } = render(values);
  is(error, '');
  const secrets = new Set(JSON.stringify(manifests).match(/(?<="secretName":")[^"]+/g));
  for (const name of secrets) {
    const created = new RegExp(
      `create secret generic "?${name.replace(/core|gateway|runner/, '.*')}`,
    );
    match(guide, created);
  }
  const { manifests: scaled } = render({ runner: { autoscaling: { enabled: true } } });
  const { spec } = found(scaled, 'ScaledObject', 'tabern-runner') as unknown as {
    spec: { triggers: [{ metadata: { query: string } }] };
  };
  const plain = (text: string) => text.replaceAll(/,namespace="[^"]*"|\s/g, '');
  const promql = /```promql\n([^`]+)```/.exec(guide)?.[1];
  is(plain(spec.triggers[0].metadata.query), plain(must(promql, 'promql')));
});

/** All of `--set` in the guide, as one object. */
function valuesOf(guide: string): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [, pairs = ''] of guide.matchAll(/--set ([^ `\n]+)/g)) {
    for (const pair of pairs.split(',')) {
      const [path = '', value = ''] = pair.split('=');
      const keys = path.split('.');
      const last = must(keys.pop(), 'key');
      let place = values;
      for (const key of keys) {
        place[key] ??= {};
        place = place[key] as Record<string, unknown>;
      }
      place[last] = /^\d+$/.test(value) ? Number(value) : value === 'true' || value;
    }
  }
  return values;
}

chart('the chart has the version of the program', async () => {
  // the last one that renders has been
  await renderer?.[Symbol.asyncDispose]();
  const { version, appVersion } = load(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as Record<
    string,
    string
  >;
  const own = JSON.parse(readFileSync(join(CHART, '../../../../package.json'), 'utf8')) as {
    version: string;
  };
  equal([version, appVersion], [own.version, own.version]);
});

chart.run();
