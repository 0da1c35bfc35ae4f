/** The JSON of functions and builds: proto/tabern/v1/console.proto and functions.proto. */
import type { RunStatus } from '../../../data/types.ts';

/** A function with its runs of the last 24 hours, as far as they are counted. */
export type FunctionItem = {
  id: string;
  name: string;
  createdAt: string;
  updatedAt: string;
  versionId?: string;
  buildId?: string;
  versions: number;
  hours: number[];
  ended: number;
  failed: number;
  p50Ms?: number;
  p95Ms?: number;
};
/** `countedFrom`: where not all runs are counted. */
export type FunctionPage = {
  functions: FunctionItem[];
  nextCursor?: string;
  counted: number;
  countedFrom?: string;
};

/** What a form that invokes a function needs. */
export type Invoked = {
  id: string;
  name: string;
  createdAt: string;
  updatedAt: string;
  versionId?: string;
  paramsSchemaJson?: string;
  invocationId?: string;
  lastParamsJson?: string;
};

export type Version = {
  id: string;
  createdAt: string;
  buildId: string;
  entrypoint: string;
  archiveBytes?: number;
  bundleBytes?: number;
  bundleSha256?: string;
  hasSchema: boolean;
};

/** A build as a row of a list. */
export type BuildRow = {
  id: string;
  status: RunStatus;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  entrypoint: string;
  published: { functionId: string; name: string; versionId: string }[];
  causeCode?: string;
  causeMessage?: string;
};

/** GET /v1/functions/builds/{id}. */
export type Build = {
  id: string;
  status: RunStatus;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  request: { entrypoint: string };
  builtFunctions?: { id: string; name: string; createdVersion?: { id: string } }[];
  cause?: { code: string; message?: string };
};
