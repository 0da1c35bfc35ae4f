/** The service's own function (core/common/built-in.ts) and its invocations. */
import type { InvocationRow } from './invocations.ts';
import type { Owned } from './rows.ts';

export type BuiltInOps = {
  /** Its newest version, if that one's bundle has the hash. */
  builtInVersion(sha256: string): string | undefined;
  /** Stores the version with its function, its project, and the row of its bundle's file. */
  publishBuiltIn(made: {
    versionId: string;
    buildId: string;
    blobId: string;
    size: number;
    sha256: string;
    at: number;
  }): void;
  /** The ended invocation, whose result is removed. Its params were removed at its end. */
  takeOneShot(wanted: Owned): InvocationRow | undefined;
};
