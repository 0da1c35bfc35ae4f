/**
 * Builds: PENDING -> RUNNING -> COMPLETED | FAILED. Accepted here, executed by a runner, ended in
 * core/runners/leases.ts.
 */

import { posix } from 'node:path';
import { traceparentIn } from '../../proto/common/tracing.ts';
import type { Build } from '../../proto/gen/tabern/v1/functions.pb.ts';
import { invalidField, notFound } from '../../proto/rpc/errors.ts';
import { dateOf, resourceOf } from '../api/answers.ts';
import { checkProject, inRange, orNotFound } from '../api/checks.ts';
import { readOffsets } from '../api/pagination.ts';
import { newId, pathId } from '../common/ids.ts';
import type { LogReaders } from '../common/log-readers.ts';
import { BUILD_TIMEOUT_MS } from '../store/operations/builds.ts';
import type { BuildCause, BuildRow, BuiltFunction } from '../store/types/functions.ts';
import type { Store } from '../store/types.ts';
import { builtToProto, type FunctionService, logToProto } from './functions.ts';
import { jsonOf, type ShowJson } from './json-values.ts';

type Options = {
  store: Store;
  now: () => number;
  /** Limit of pending builds of a project. */
  queueMax: number;
  /** How long a build may wait for a runner. */
  waitMs: number;
  readers: Pick<LogReaders, 'note'>;
};

type BuildNames = 'createBuild' | 'listBuilds' | 'getBuild' | 'listBuildLogs';

export function buildHandlers(options: Options): Pick<FunctionService, BuildNames> {
  const { store, now, queueMax, waitMs, readers } = options;

  return {
    async createBuild(request, { projectId, call }) {
      checkProject(request.projectId, projectId);
      const entrypoint = normalisedEntrypoint(request.entrypoint);
      const { archiveBlobId } = request;
      const blob = await store.getBlob(archiveBlobId);
      if (blob?.projectId !== projectId || blob.kind !== 'BUILD_ARCHIVE') {
        throw notFound('Archive', archiveBlobId);
      }
      const at = now();
      // shown until a runner starts the build: the time then counts from the start
      const ends = { waitUntil: at + waitMs, expiresAt: at + BUILD_TIMEOUT_MS };
      const ids = { id: newId(), projectId, archiveBlobId };
      const traceparent = traceparentIn(call.metadata);
      const wanted = { ...ids, ...ends, entrypoint, queueMax, traceparent, at };
      const row = await store.createBuild(wanted);
      return { build: toProto(row, [], jsonOf(call)) };
    },

    async getBuild(request, { projectId, call }) {
      const id = pathId('buildId', request.buildId);
      const found = orNotFound(await store.getBuild({ id, projectId }), 'Build', id);
      return { build: toProto(found.build, found.functions, jsonOf(call)) };
    },

    async listBuilds(request, { projectId, call }) {
      const filter = { projectId, status: request.status, ...readOffsets(request) };
      const { rows, total } = await store.listBuilds(filter);
      const show = jsonOf(call);
      return { data: rows.map(({ build, functions }) => toProto(build, functions, show)), total };
    },

    async listBuildLogs(request, { projectId }) {
      const id = pathId('buildId', request.buildId);
      const [found, lines] = await Promise.all([
        store.getBuild({ id, projectId }),
        store.listLogs(id),
      ]);
      orNotFound(found, 'Build', id);
      readers.note(id);
      return { logs: lines.map(logToProto), total: lines.length };
    },
  };
}

function toProto(row: BuildRow, built: BuiltFunction[], show: ShowJson): Build {
  const cause = row.cause === null ? undefined : (JSON.parse(row.cause) as BuildCause);
  return {
    ...resourceOf(row),
    request: { entrypoint: row.entrypoint, functionNames: [] },
    status: row.status,
    startedAt: new Date(row.startedAt ?? row.createdAt),
    endedAt: dateOf(row.endedAt),
    expiresAt: new Date(row.expiresAt),
    builtFunctions: built.map((one) => builtToProto(one, show)),
    cause,
  };
}

/** Source: proto/spec/functions.md 2. */
const EXTENSIONS = ['.ts', '.js', '.mjs', '.mts'];
/** Ours: longer than any path in a tar without extensions. */
const LENGTH = { min: 1, max: 512, unit: ' characters' };

export function normalisedEntrypoint(typed: string): string {
  const refuse = (problem: string) => invalidField('entrypoint', problem);
  inRange('entrypoint', typed.length, LENGTH);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\x00-\x1f\x7f]/.test(typed)) throw refuse('must not contain control characters.');
  const path = typed.replaceAll('\\', '/');
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) {
    throw refuse('must be relative to the root of the archive.');
  }
  if (path.split('/').includes('..')) throw refuse('must not contain "..".');
  if (!EXTENSIONS.includes(posix.extname(path))) {
    throw refuse(`must end in ${EXTENSIONS.join(', ')}.`);
  }
  return posix.normalize(path);
}
