/** A whole core on a temporary directory, and short calls that create work in it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCoreConfig } from '../../core/config.ts';
import { type Core, type CoreOptions, startCore } from '../../core/main.ts';
import type { BlobKind } from '../../core/store/types/files.ts';
import type { Env } from '../../proto/common/env.ts';
import { openLog } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import type { WriteBlobRequest } from '../../proto/gen/tabern/v1/blobs.pb.ts';
import type { Invocation } from '../../proto/gen/tabern/v1/invocations.pb.ts';
import type { CompleteBuildRequest, Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { type TestClock, testClock } from '../support/clock.ts';
import { databaseOf, sameDatabaseOf } from '../support/engine.ts';
import { tempDirectory } from '../support/temp.ts';

export const KEY = 'a-preset-key-of-the-tests';
export const HOLDER = { runnerId: 'runner', instanceId: 'first' };

type Manifest = { name: string; config?: string; schema?: string };

export type Booted = AsyncDisposable & {
  core: Core;
  clients: Core['clients'];
  dir: string;
  /** The errors in core's log, a line each. */
  logged: readonly string[];
  clock: TestClock;
  /** The options of a project's call, and of a runner's. */
  asProject: CallOptions;
  asRunner: CallOptions;
  asGateway: CallOptions;
  asOperator: CallOptions;
  /** Stores bytes: as a project an archive, under a lease a bundle. */
  upload(bytes: string, leaseId?: string): Promise<string>;
  /** Leases and takes, as a runner does. */
  lease(kind: 'INVOCATION' | 'BUILD' | 'SESSION', waitMs?: number): Promise<Work[]>;
  /** A build that ran to this outcome. */
  build(outcome: CompleteBuildRequest['outcome'] | { manifests: Manifest[] }): Promise<string>;
  /** A published function's id. */
  publish(manifest: Manifest): Promise<string>;
  invoke(functionId: string, params?: Record<string, unknown>): Promise<Invocation>;
};

/**
 * The settings of a core on that directory, and on the database that `boot` gave it: no key pair
 * before a context needs one.
 */
export const configOn = (dir: string, env: Env = {}) =>
  readCoreConfig({ TABERN_DATA: dir, TABERN_KEY_PAIRS: '0', ...sameDatabaseOf(dir), ...env });

/**
 * `await using app = await boot()`: local clients, a clock that the test moves, one runner, no key
 * pair before a context needs one.
 */
export async function boot(
  env: Env = {},
  options: Pick<CoreOptions, 'disk' | 'metrics'> = {},
): Promise<Booted> {
  const temp = tempDirectory();
  const clock = testClock();
  const config = configOn(temp.path, {
    TABERN_API_KEY: KEY,
    ...(await databaseOf(temp.path)),
    ...env,
  });
  const logged: string[] = [];
  const error = (...said: unknown[]) => void logged.push(JSON.stringify(said));
  const log = Object.assign(openLog({ role: 'core', level: 'silent' }), { error });
  const core = await startCore(config, log, { ...options, now: clock.now });
  const { clients } = core;
  const token = (name: string) => {
    const text = readFileSync(join(temp.path, 'keys', `${name}.token`), 'utf8').trim();
    return { metadata: { authorization: `Bearer ${text}` } };
  };
  const asProject = { metadata: { 'x-svc-api-key': KEY } };
  const asRunner = token('runner');
  await clients.runners.registerRunner(HOLDER, asRunner);

  const upload: Booted['upload'] = async (bytes, leaseId) => {
    const header = leaseId ? ({ kind: 'BUNDLE', leaseId } as const) : undefined;
    const parts = blobParts(header ?? { kind: 'BUILD_ARCHIVE' }, bytes);
    const answer = await clients.blobs.writeBlob(parts, leaseId ? asRunner : asProject);
    return answer.blobId;
  };
  const lease: Booted['lease'] = async (kind, waitMs = 0) => {
    const wanted = { ...HOLDER, kind, max: 1, waitMs };
    const { work } = await clients.runners.leaseWork(wanted, asRunner);
    const leaseIds = work.map(({ leaseId }) => leaseId);
    await clients.runners.reportRunner({ ...HOLDER, leaseIds }, asRunner);
    return work;
  };
  const build: Booted['build'] = async (outcome) => {
    const archiveBlobId = await upload('archive');
    const wanted = { entrypoint: './index.ts', archiveBlobId };
    const { build: made } = await clients.functions.createBuild(wanted, asProject);
    const { leaseId } = must((await lease('BUILD'))[0], 'a build to lease');
    const end =
      outcome && 'manifests' in outcome
        ? successOf(await upload('bundle', leaseId), outcome.manifests)
        : outcome;
    await clients.runners.completeBuild({ leaseId, outcome: end }, asRunner);
    return must(made, 'build').id;
  };

  return {
    core,
    clients,
    dir: temp.path,
    logged,
    clock,
    asProject,
    asRunner,
    asGateway: token('gateway'),
    asOperator: token('operator'),
    upload,
    lease,
    build,
    async publish(manifest) {
      const buildId = await build({ manifests: [manifest] });
      const { build: made } = await clients.functions.getBuild({ buildId }, asProject);
      return must(made?.builtFunctions[0], 'a published function').id;
    },
    async invoke(functionId, params = {}) {
      const wanted = { functionId, params, sessionCreateParams: undefined };
      const { invocation } = await clients.invocations.invokeFunction(wanted, asProject);
      return must(invocation, 'invocation');
    },
    async [Symbol.asyncDispose]() {
      await core.close();
      await temp[Symbol.asyncDispose]();
    },
  };
}

/** The messages of one upload, in chunks of five bytes. */
export async function* blobParts(
  header: {
    kind: BlobKind | 'KIND_UNSPECIFIED';
    leaseId?: string;
    url?: string;
    reported?: boolean;
  },
  bytes: string | Uint8Array,
): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: header } };
  const all = Buffer.from(bytes);
  const step = Math.max(5, Math.ceil(all.length / 100));
  for (let from = 0; from < all.length; from += step) {
    yield { part: { $case: 'chunk', value: all.subarray(from, from + step) } };
  }
}

function successOf(
  bundleBlobId: string,
  manifests: readonly Manifest[],
): CompleteBuildRequest['outcome'] {
  const found = manifests.map(({ name, config = '', schema = '' }) => ({
    name,
    sessionConfigJson: config,
    paramsSchemaJson: schema,
  }));
  return { $case: 'success', value: { bundleBlobId, manifests: found } };
}
