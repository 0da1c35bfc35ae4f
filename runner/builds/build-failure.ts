/** Why a build failed: thrown by a step, reported as the build's cause by run-build.ts. */

/** The codes of Build.Cause. Source: proto/spec/functions.md 4, functions.proto. */
export type CauseCode =
  | 'NO_MANIFESTS_FOUND'
  | 'TOO_MANY_MANIFESTS'
  | 'MANIFEST_TOO_LARGE'
  | 'INVALID_SESSION_CREATE_PARAMS'
  | 'TIMED_OUT'
  | 'BUILD_ERROR'
  | 'INTERNAL_ERROR';

/** `message` is one sentence for the project's author: the problem, then the fix. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure';
  readonly code: CauseCode;

  constructor(code: CauseCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** A defect of the project. */
export function buildError(message: string, cause?: unknown): BuildFailure {
  return new BuildFailure('BUILD_ERROR', message, cause);
}
