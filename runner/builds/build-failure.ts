/**
 * Why a build failed, in words for its author: thrown by a step of a build, turned into the build's
 * cause by run-build.ts.
 */

/** The codes of Build.Cause. Source: proto/spec/functions.md 4, functions.proto. */
export type CauseCode =
  | 'NO_MANIFESTS_FOUND'
  | 'TOO_MANY_MANIFESTS'
  | 'MANIFEST_TOO_LARGE'
  | 'INVALID_SESSION_CREATE_PARAMS'
  | 'TIMED_OUT'
  | 'BUILD_ERROR'
  | 'INTERNAL_ERROR';

/** `message` is one sentence: what and then what to do. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure';
  readonly code: CauseCode;

  constructor(code: CauseCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
