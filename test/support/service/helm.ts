/**
 * Renders the chart by Go's own templates (helm.go beside it), and checks manifests against the
 * types and schemas of Kubernetes and of its operators, from npm.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { load, loadAll } from 'js-yaml';
import { must } from '../../../proto/common/must.ts';
import { tempDirectory } from '../temp.ts';

export type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  [member: string]: unknown;
};
/** `error`: of a chart that refuses its values. */
export type Rendered = { manifests: Manifest[]; error: string };

const ROOT = join(import.meta.dirname, '../../..');
export const CHART = join(ROOT, 'gateway/packaging/deploy/helm');

/** Where types of an apiVersion are. */
const PACKAGES: Readonly<Record<string, string>> = {
  'keda.sh/v1alpha1': '@kubernetes-models/keda/keda.sh/v1alpha1',
  'monitoring.coreos.com/v1': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
};
const packageOf = (apiVersion: string) => PACKAGES[apiVersion] ?? `kubernetes-models/${apiVersion}`;

export type Renderer = AsyncDisposable & {
  /** With these values over those of values.yaml; the release is `tabern` in `browsers`. */
  render(values: object, release?: { name: string; namespace: string }): Rendered;
};

/** Values of a chart, as far as they are read here. */
type Values = { [name: string]: unknown };

/** What the schema refuses of these values over those of values.yaml, a line each. */
export function refusedValues(values: object): string[] {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as object;
  const check = new Ajv({ allErrors: true }).compile(schema);
  if (check(mergedValues(values))) return [];
  const name = (path: string) => path.slice(1).replaceAll('/', '.');
  return (check.errors ?? []).map((error) => `${name(error.instancePath)}: ${error.message}`);
}

function mergedValues(values: object): Values {
  return merged(load(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Values, values as Values);
}

/** As Helm merges: objects by their members; null removes one. */
function merged(base: Values, over: Values): Values {
  const values = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const old = values[name];
    if (value === null) delete values[name];
    else values[name] = isValues(old) && isValues(value) ? merged(old, value) : value;
  }
  return values;
}

function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Compiles the renderer with Debian's Go and its library of template functions. */
export function openRenderer(): Renderer {
  const dir = tempDirectory();
  const program = join(dir.path, 'helm');
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: '/usr/share/gocode',
    GOCACHE: join(dir.path, 'cache'),
  };
  const source = join(import.meta.dirname, 'helm.go');
  const built = spawnSync('go', ['build', '-o', program, source], { env, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`go build: ${built.stderr}${built.error ?? ''}`);
  return {
    render(values, { name, namespace } = { name: 'tabern', namespace: 'browsers' }) {
      const refused = refusedValues(values);
      if (refused.length > 0) return { manifests: [], error: refused.join('\n') };
      const own = { Dir: CHART, Values: mergedValues(values), Name: name, Namespace: namespace };
      const input = JSON.stringify(own);
      const { stdout, stderr } = spawnSync(program, { input, encoding: 'utf8' });
      const documents = stderr === '' ? loadAll(stdout) : [];
      return { manifests: documents.filter(Boolean) as Manifest[], error: stderr };
    },
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

/** What Kubernetes would refuse, one sentence each: unknown members, wrong types, missing ones. */
export async function refusalsOf(manifests: readonly Manifest[]): Promise<string[]> {
  const refusals = await Promise.all(
    manifests.map(async (manifest) => {
      const models = await import(packageOf(manifest.apiVersion));
      try {
        new models[manifest.kind](manifest).validate();
        return [];
      } catch (error) {
        return [`${manifest.kind}: ${(error as Error).message}`];
      }
    }),
  );
  return [...refusals.flat(), ...(await unknownMembers(manifests))];
}

/** The schemas allow unknown members; the types do not, in a literal. */
async function unknownMembers(manifests: readonly Manifest[]): Promise<string[]> {
  await using dir = tempDirectory();
  symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
  const lines = manifests.map((manifest, index) => {
    const { kind, apiVersion } = manifest;
    const literal = JSON.stringify(manifest, undefined, 1);
    const type = `import(${JSON.stringify(packageOf(apiVersion))}).I${kind}`;
    return `export const manifest${index}: ${type} = ${literal};`;
  });
  writeFileSync(join(dir.path, 'manifests.ts'), lines.join('\n'));
  writeFileSync(
    join(dir.path, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        types: [],
        module: 'nodenext',
        preserveSymlinks: true,
      },
      files: ['manifests.ts'],
    }),
  );
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { status, stdout } = spawnSync(tsc, ['-p', dir.path, '--pretty', 'false'], {
    encoding: 'utf8',
  });
  if (must(status, 'status') === 0) return [];
  return stdout.split('\n').filter((line) => line.includes('error TS'));
}
