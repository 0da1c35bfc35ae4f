/**
 * The chart for Kubernetes: rendered as Helm does, accepted by the schemas of Kubernetes, KEDA and
 * the Prometheus operator; its settings, ports and paths are the program's.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { load } from 'js-yaml';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
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
} from '../../support/service/helm.ts';

const chart = suite('gateway/packaging/helm');

/** Where an ordinary user lacks Go, the chart is rendered elsewhere. */
const MUST_RUN = process.getuid?.() === 0 || process.env['CI'] === 'true';
const hasGo = MUST_RUN || spawnSync('go', ['version']).status === 0;
const KNOWN = new Set(SETTINGS.flatMap(({ name }) => [`TABERN_${name}`, `TABERN_${name}_FILE`]));
const SHARED = {
  publicUrl: 'https://tabern.example.com',
  database: { secret: 'tabern-database', hasDirectUrl: true, pooled: 'on' },
  blobs: { url: 's3://bucket/tabern', endpoint: 'https://s3.example.com', secret: 'tabern-s3' },
  core: { replicas: 2, env: { TABERN_CONCURRENCY: '100' } },
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
};
type Pod = {
  containers: [Container];
  volumes: { name: string; secret?: { secretName: string; items?: { key: string }[] } }[];
  terminationGracePeriodSeconds: number;
  securityContext: { seccompProfile: { type: string } };
};

let renderer: ReturnType<typeof openRenderer> | undefined;
function render(values: object = {}): Rendered {
  renderer ??= openRenderer();
  return renderer.render(values);
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
    const { manifests } = render({ networkPolicy: { allowCidrs: ['10.1.0.0/16'] } });
    type Policy = { spec: { egress: { to: { ipBlock?: object }[] }[] } };
    const { spec } = found(manifests, 'NetworkPolicy', 'tabern-runner') as unknown as Policy;
    const blocks = spec.egress.flatMap(({ to }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
    equal(blocks, [
      { cidr: '0.0.0.0/0', except: BLOCKED_IPV4 },
      { cidr: GLOBAL_IPV6, except: BLOCKED_IPV6 },
      { cidr: '10.1.0.0/16' },
    ]);
  },
);

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
  ['a bucket without keys', { blobs: { url: 's3://b' } }, /blobs\.url needs blobs\.secret/],
  [
    'an Ingress without a host',
    { gateway: { ingress: { enabled: true } } },
    /ingress\.host is missing/,
  ],
] as const) {
  rendered(`${what}: a sentence that names the value`, () => {
    const { manifests, error } = render(values);
    equal(manifests, []);
    match(error, sentence);
  });
}

chart('the schema of values accepts its own, and names what is wrong', () => {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as object;
  const check = new Ajv({ allErrors: true }).compile(schema);
  const values = load(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as object;
  ok(check(values), JSON.stringify(check.errors));
  ok(check(SHARED), JSON.stringify(check.errors));
  for (const wrong of [
    { runner: { sandbox: 'none' } },
    { core: { replicas: 0 } },
    { gateways: {} },
    { blobs: { url: 'https://bucket' } },
  ]) {
    ok(!check(wrong), JSON.stringify(wrong));
  }
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
