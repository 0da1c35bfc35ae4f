/**
 * Limits that two components share: two of core, gateway and runner, or one of them and the table
 * of settings. A limit of one component is in its own file; runner/host and runner/sdk, which
 * import no other folder, have their own.
 */

const KIB = 1 << 10;
const MIB = 1 << 20;

/** In bytes, of a published archive. Source: proto/spec/functions.md 2. */
export const ARCHIVE_MAX_BYTES = 25 * MIB;
/** In bytes, of a build's bundle. Source: BUNDLE of blobs.proto. */
export const BUNDLE_MAX_BYTES = 32 * MIB;
/** In bytes, of an uploaded certificate. Source: extensions.proto. */
export const CERTIFICATE_MAX_BYTES = 64 << 10;
/** In bytes, of a zipped browser extension. Source: proto/spec/sessions.md 9. */
export const EXTENSION_MAX_BYTES = 100 * MIB;
/** In bytes, of a context's content, as stored. Source: proto/spec/contexts.md 4. */
export const CONTEXT_MAX_BYTES = 512 * MIB;
/** In bytes, of a file that a page downloaded. Source: DOWNLOAD of blobs.proto. */
export const DOWNLOAD_MAX_BYTES = 1024 * MIB;
/** In bytes, of a file for a session. Ours. */
export const SESSION_FILE_MAX_BYTES = 500 * MIB;
/**
 * In bytes before compression, of a session's protocol log. Ours: a busy hour of a driver has 20 to
 * 60 MB.
 */
export const SESSION_LOG_MAX_BYTES = 64 * MIB;

/** In characters, of what a handoff asks of a person. Ours: they read it beside the picture. */
export const INSTRUCTIONS_MAX_CHARS = 2_000;

/** In bytes of JSON, of an invocation. Source: proto/spec/functions.md 5. */
export const PARAMS_MAX_BYTES = 64 * KIB;
/** Functions of one build. Source: proto/spec/functions.md 3. */
export const FUNCTIONS_MAX = 10;
/** In characters, of a function's name. Source: proto/spec/functions.md 3. */
export const FUNCTION_NAME_MAX_CHARS = 128;
/**
 * In bytes, of one function: name, sessionConfig and schema as JSON. Source:
 * proto/spec/functions.md 3.
 */
export const MANIFEST_MAX_BYTES = 64 * KIB;
/** In seconds, of an invocation. Source: proto/spec/functions.md 3, 5. */
export const INVOCATION_TIMEOUT_MIN_S = 60;
export const INVOCATION_TIMEOUT_MAX_S = 900;
export const INVOCATION_TIMEOUT_DEFAULT_S = INVOCATION_TIMEOUT_MAX_S;
/** In seconds: the longest wait that a request may set. Source: GetInvocationRequest.wait. */
export const INVOCATION_WAIT_MAX_S = 60;

/** Labels of a runner; in characters, of a name or value. Source: runners.proto. */
export const RUNNER_LABELS_MAX = 20;
export const RUNNER_LABEL_MAX_CHARS = 63;
/** Leases of one renewal, lines of one append. Source: runners.proto. */
export const RUNNER_BATCH_MAX = 1_000;
/**
 * Deliveries of one claim, and reports of one call. With bodies of 20 KiB some 1.3 MiB. Source:
 * proto/spec/webhooks.md 1.
 */
export const DELIVERY_BATCH_MAX = 64;
/** In bytes, kept of an endpoint's response to a delivery. Source: proto/spec/webhooks.md 5. */
export const RESPONSE_KEPT_BYTES = 4 * KIB;

/**
 * The time limit of sending a context's content, in either direction: 512 MiB at 2.4 Mbit/s. Ours.
 */
export const CONTEXT_TRANSFER_TIMEOUT_MS = 1_800_000;
/** The time limit of sending a session's file, in either direction: 500 MiB at 2.4 Mbit/s. Ours. */
export const FILE_TRANSFER_TIMEOUT_MS = 1_800_000;

/** In bytes, of the path of a unix socket. Source: unix(7). */
export const SOCKET_PATH_MAX_BYTES = 107;

/** Concurrent sessions, and concurrent invocations, of a project. Ours. */
export const CONCURRENCY_MAX = 10_000;
/** Pending invocations, and pending builds, of a project. Ours. */
export const QUEUE_MAX = 1_000_000;
/** Of any quota of a project: MiB, or a count. Ours: 95 TiB. */
export const QUOTA_MAX = 100_000_000;

/** Steps of one run that are stored. Ours: a run has some eight. */
export const STEPS_MAX = 32;
