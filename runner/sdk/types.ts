/** Types for authors of functions: the handler, its context, and the options of a function. */

/** Any value that JSON can represent. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/** The platform's AbortSignal; in a program without its type (`"types": []`), its main members. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer S } }
  ? S
  : {
      readonly aborted: boolean;
      readonly reason: unknown;
      throwIfAborted(): void;
      addEventListener(type: 'abort', listener: () => void): void;
    };

/** The context of one invocation, the first argument of a handler. */
export type FunctionContext<P = Record<string, unknown>> = {
  /** The remote browser of this invocation. It closes when the handler ends. */
  session: {
    id: string;
    /** For `chromium.connectOverCDP()` or `puppeteer.connect({ browserWSEndpoint })`. */
    connectUrl: string;
  };
  invocation: { id: string; region: string };
  /** The params of the invocation: the same value as the handler's second argument. */
  params: P;
  /** Values by name: of the secrets that are attached to the function. Empty in `tabern dev`. */
  secrets: Readonly<Record<string, string>>;
  /** Aborts when the invocation exceeds its time limit or is cancelled. */
  signal: Signal;
};

/** Runs once per invocation. The return value is the result; an exception fails the invocation. */
export type Handler<P = Record<string, unknown>> = (
  context: FunctionContext<P>,
  params: P,
) => unknown;

/** Options of a function's sessions: as for a new session, except keepAlive, region, projectId. */
export type SessionConfig = {
  browserSettings?: {
    viewport?: { width?: number; height?: number };
    recordSession?: boolean;
    logSession?: boolean;
    blockAds?: boolean;
    solveCaptchas?: boolean;
    advancedStealth?: boolean;
    ignoreCertificateErrors?: boolean;
    allowedDomains?: string[];
    network?: { allow?: string[]; deny?: string[] };
    context?: { id: string; persist?: boolean };
    [option: string]: unknown;
  };
  /** `true` uses the service's own proxies; a list of rules selects proxies by domain. */
  proxies?: boolean | readonly object[];
  /** In seconds, 60 to 900. */
  timeout?: number;
  userMetadata?: Record<string, unknown>;
  [option: string]: unknown;
};

/** A zod 4 schema, another one with a conversion to JSON Schema, or a JSON Schema (2020-12). */
export type ParametersSchema = object;

export type FunctionConfig<S = ParametersSchema> = {
  sessionConfig?: SessionConfig;
  /** Params that do not match the schema are rejected before the invocation starts. */
  parametersSchema?: S;
  /**
   * `fresh`: each invocation loads the module anew, in a thread of its own. `warm`: threads are
   * reused, so module-level variables may keep values from an earlier invocation (as on AWS
   * Lambda). By default the operator's setting.
   */
  isolation?: 'warm' | 'fresh';
};

/** The type of a handler's params: the schema's output type, or unknown for an untyped schema. */
export type ParamsOf<S> = S extends { _zod: { output: infer O } }
  ? O
  : S extends { _output: infer O }
    ? O
    : S extends { '~standard': { types?: infer T } }
      ? NonNullable<T> extends { output: infer O }
        ? O
        : unknown
      : unknown;

/** A registered function. */
export type Definition = {
  name: string;
  handler: Handler<never>;
  config: FunctionConfig;
};

/** A function as a build reports it; every member is plain JSON. */
export type Manifest = {
  name: string;
  sessionConfig?: unknown;
  /** JSON Schema, draft 2020-12; absent: params are not validated. */
  parametersSchema?: unknown;
};
