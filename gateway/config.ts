/** The gateway's settings, read once, and its own limits as named constants. */
import type { Env } from '../proto/common/env.ts';
import { coreAddress, readSettings } from '../proto/common/settings/read.ts';
import { settingError } from '../proto/common/settings/sources.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import type { TlsFiles } from './http/tls.ts';

/**
 * In bytes, of a JSON body. Larger than any limit of core, so that core's own error is the one
 * seen.
 */
export const BODY_MAX_BYTES = 1024 * 1024;
/**
 * In bytes: a body that says it is smaller is read before its key is checked, which saves a call. A
 * stranger on each of CONNECTIONS_MAX makes us keep 128 MiB. Ours.
 */
export const BODY_UNKEYED_MAX_BYTES = 16 * 1024;
/**
 * In bytes: what is kept of all larger JSON bodies that are still arriving, in shares by project
 * (proto/sharing/shares.ts). Ours.
 */
export const BODIES_MAX_BYTES = 128 * 1024 * 1024;
/** In bytes, of a published archive. Source: proto/spec/functions.md 2. */
export const ARCHIVE_MAX_BYTES = 25 * 1024 * 1024;
/** In bytes, of the `metadata` part beside it. Ours. */
export const METADATA_MAX_BYTES = 64 * 1024;
/** In bytes, of the form: the archive, its metadata, and what multipart puts around them. */
export const UPLOAD_MAX_BYTES = ARCHIVE_MAX_BYTES + METADATA_MAX_BYTES + 64 * 1024;
/** In characters, path and query. Ours: no published client comes near it. */
export const URL_MAX_CHARS = 8 * 1024;
/**
 * In bytes, all headers of a request; above URL_MAX_CHARS, so that a long URL alone is a 414 and
 * not a 431. Ours.
 */
export const HEADERS_MAX_BYTES = 32 * 1024;
/**
 * Levels of nesting of a JSON body. Ours: each takes three of protobuf's, of which generated code
 * reads 100.
 */
export const JSON_DEPTH_MAX = 32;
/** A request ends after this, also in core. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** In seconds: what a request may ask its answer to wait. Source: GetInvocationRequest.wait. */
export const WAIT_MAX_S = 60;
/** Uploads at once, of one key and of all: what they may take of disk and time. Ours. */
export const UPLOADS_OF_KEY_MAX = 8;
export const UPLOADS_MAX = 64;
/** An upload of 25 MB ends after this: enough for a line of 1 Mbit/s. Ours. */
export const UPLOAD_TIMEOUT_MS = 300_000;
/** An upload that sends nothing for this long ends. */
export const UPLOAD_IDLE_MS = 30_000;
/** In bytes, of a file for a session. Ours. */
export const FILE_MAX_BYTES = 500 * 1024 * 1024;
/** A file ends after this, either way: enough for 500 MiB over a line of 2.4 Mbit/s. Ours. */
export const FILE_TRANSFER_TIMEOUT_MS = 1_800_000;
/** In bytes, of a zipped browser extension. Source: proto/spec/sessions.md 9. */
export const EXTENSION_MAX_BYTES = 100 * 1024 * 1024;
/** Core unpacks an extension of 512 MiB within this, after those that came before it. Ours. */
export const EXTENSION_CHECK_TIMEOUT_MS = 110_000;
/** In bytes, of what a context holds. Source: proto/spec/contexts.md 4. */
export const CONTEXT_MAX_BYTES = 512 * 1024 * 1024;
/**
 * It ends after this, either way: enough for a line of 2.4 Mbit/s. Ours. Its other half is
 * UPLOAD_LASTS_MS of core.
 */
export const CONTEXT_TRANSFER_TIMEOUT_MS = 1_800_000;
/** Core reads an upload of 512 MiB twice and unpacks 2 GiB within this. Ours. */
export const CONTEXT_VERIFY_TIMEOUT_MS = 110_000;
/** Headers must be whole after this. Source: proto/spec/rest.md 5. */
export const HEADERS_TIMEOUT_MS = 10_000;
/**
 * An idle connection is kept this long: above the 60 s of the usual proxy in front, which must be
 * the one to close.
 */
export const KEEP_ALIVE_MS = 65_000;
/**
 * A connection that moves no byte either way, such as a reader that does not read, ends after this.
 * Ours.
 */
export const SOCKET_IDLE_MS = 120_000;
/**
 * How often node looks for the connections that are over time; its own 30 s would let slow headers
 * live 40 s.
 */
export const CONNECTION_CHECK_MS = 2_000;
/** In shares by network: a client, or a proxy in front, has 4,096 of them. */
export const CONNECTIONS_MAX = 8_192;
/**
 * After an early answer, such as a 413, what the client still sends is read and dropped for this
 * long. Ours.
 */
export const LINGER_MS = 5_000;
/** A connection to a session waits so long for its Chrome. Ours: as long as core answers waits. */
export const LOCATE_MAX_MS = 25_000;
/** For a runner's door to open. Ours: it is on this machine or near it. */
export const DIAL_TIMEOUT_MS = 5_000;
/** For a runner's door to answer, but for the upload of a file. Ours. */
export const DOOR_TIMEOUT_MS = 120_000;
/**
 * In bytes, of a door's answer. It holds titles and addresses of a tenant's choice, and is parsed
 * on the main thread. Ours: the protocol's description has 1.3 MB.
 */
export const DOOR_ANSWER_MAX_BYTES = 4 << 20;
/** A peer of a tunnel that is silent is asked whether it lives after this. Ours. */
export const TUNNEL_KEEP_ALIVE_MS = 20_000;
/** After one side of a tunnel has ended, the other may take what is left; idle, it ends. Ours. */
export const TUNNEL_LINGER_MS = 30_000;
/** In a drain, for clients to hear 1001 and leave. Ours. */
export const TUNNEL_GOODBYE_MS = 2_000;
/** In bytes: what a client may say before its upgrade is answered. Ours: no known one does. */
export const TUNNEL_EARLY_MAX_BYTES = 64 * 1024;
/** A drain ends the requests in flight after this. Source: proto/spec/rest.md 5. */
export const DRAIN_MAX_MS = 25_000;

export type GatewayConfig = ReturnType<typeof gatewayConfig>;

/** The variables of this process, for the command table to hand to each role. */
export function environment(): NodeJS.ProcessEnv {
  return process.env;
}

/** Throws a ConfigError that names the source of a value that cannot be used. */
export function gatewayConfig(env: Env) {
  const { data, webhookAllowCidrs, tlsCertFile, tlsKeyFile, ...rest } = readSettings(
    env,
    'gateway',
  );
  return {
    ...rest,
    dataDir: data,
    core: coreAddress({ data, core: rest.core }),
    /** Private blocks that webhooks may reach, such as `127.0.0.0/8`. */
    webhookAllow: cidrList(webhookAllowCidrs ?? []),
    /** Undefined for plain http. */
    tls: tlsFiles(env, tlsCertFile, tlsKeyFile),
  };
}

/** Both or none. */
function tlsFiles(env: Env, certFile?: string, keyFile?: string): TlsFiles | undefined {
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile };
  if (certFile === undefined && keyFile === undefined) return undefined;
  const [given, missing] = certFile ? ['CERT', 'KEY'] : ['KEY', 'CERT'];
  const problem = `goes together with TABERN_TLS_${missing}_FILE: set both`;
  throw settingError(env, `TABERN_TLS_${given}_FILE`, { problem });
}
