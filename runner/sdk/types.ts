/**
 * What a function is made of, for its author: the handler, what it is given, and the options of its
 * sessions.
 */

/** Any value that survives JSON. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/** What a handler is given beside its params. */
export type FunctionContext<P = Record<string, unknown>> = {
  /** The remote browser of this invocation; it closes when the handler ends. */
  session: {
    id: string;
    /** Give it to `chromium.connectOverCDP()` or `puppeteer.connect({ browserWSEndpoint })`. */
    connectUrl: string;
  };
  invocation: { id: string; region: string };
  /** The same value as the handler's second argument. */
  params: P;
  /** Ours: always empty; values for functions cannot be stored yet. */
  secrets: Readonly<Record<string, string>>;
  /** Aborts when the invocation's time is over. */
  signal: AbortSignal;
};

/** Runs once per invocation. What it returns is the result; what it throws fails the invocation. */
export type Handler<P = Record<string, unknown>> = (
  context: FunctionContext<P>,
  params: P,
) => unknown;

/**
 * Options of the sessions that a function runs in: those of session creation but keepAlive, region
 * and projectId.
 */
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
    context?: { id: string; persist?: boolean };
    [option: string]: unknown;
  };
  /** True for the service's own proxies, or a list of rules. */
  proxies?: boolean | readonly object[];
  /** Seconds, 60 to 900. */
  timeout?: number;
  userMetadata?: Record<string, unknown>;
  [option: string]: unknown;
};

/**
 * A zod schema, another schema that can say itself in JSON Schema, or a JSON schema (draft 2020-12)
 * as it is.
 */
export type ParametersSchema = object;

export type FunctionConfig<S = ParametersSchema> = {
  sessionConfig?: SessionConfig;
  /** Params that do not fit it are refused before anything starts. */
  parametersSchema?: S;
  /**
   * Ours. `fresh`: each invocation starts with the module loaded anew, in a thread of its own;
   * `warm`: a thread that an invocation left clean is used again, as on Lambda. The operator's
   * choice when absent.
   */
  isolation?: 'warm' | 'fresh';
};

/**
 * What a handler receives under a schema: its output type, or unknown where the schema carries no
 * types.
 */
export type ParamsOf<S> = S extends { _zod: { output: infer O } }
  ? O
  : S extends { _output: infer O }
    ? O
    : S extends { '~standard': { types?: infer T } }
      ? NonNullable<T> extends { output: infer O }
        ? O
        : unknown
      : unknown;

/** A function as the runner sees it. */
export type Definition = {
  name: string;
  handler: Handler<never>;
  config: FunctionConfig;
};

/** A function as a build reports it; every member is plain JSON. */
export type Manifest = {
  name: string;
  sessionConfig?: unknown;
  /** JSON schema, draft 2020-12; absent for no check of params. */
  parametersSchema?: unknown;
};
