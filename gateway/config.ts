/** The gateway's settings, read once, and its own limits as named constants. */
import { join } from 'node:path';
import { noAccess, readToken } from '../proto/common/durable.ts';
import { ConfigError, type Env } from '../proto/common/env.ts';
import { ARCHIVE_MAX_BYTES } from '../proto/common/limits.ts';
import { coreAddress, readSettings } from '../proto/common/settings/read.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { coreTls } from '../proto/tls/core-tls.ts';
import { pairFiles } from '../proto/tls/pem-files.ts';

/** In bytes, of a JSON body. Above the limits of core, so that clients see core's error. */
export const BODY_MAX_BYTES = 1024 * 1024;
/**
 * In bytes: a body that declares at most this size is read before its key is checked, which saves a
 * call. Without keys, CONNECTIONS_MAX connections can use 128 MiB. Ours.
 */
export const BODY_UNKEYED_MAX_BYTES = 16 * 1024;
/** In bytes: memory for all larger JSON bodies that are arriving, in shares by project. Ours. */
export const BODIES_MAX_BYTES = 128 * 1024 * 1024;
/** In bytes, of the `metadata` part beside it. Ours. */
export const METADATA_MAX_BYTES = 64 * 1024;
/** In bytes, of the form: the archive, its metadata and the multipart framing. */
export const UPLOAD_MAX_BYTES = ARCHIVE_MAX_BYTES + METADATA_MAX_BYTES + 64 * 1024;
/** In characters, of path and query. Ours: far more than published clients send. */
export const URL_MAX_CHARS = 8 * 1024;
/** In bytes. Above URL_MAX_CHARS, so that a long URL alone is a 414 and not a 431. Ours. */
export const HEADERS_MAX_BYTES = 32 * 1024;
/** Levels of a JSON body. Ours: each takes three of protobuf's 100 in generated code. */
export const JSON_DEPTH_MAX = 32;
/** A request times out after this, also in core. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** Concurrent uploads of one key and of all keys: they bound time and disk use. Ours. */
export const UPLOADS_OF_KEY_MAX = 8;
export const UPLOADS_MAX = 64;
/** Of one part to a bucket that is away; the client waits. Ours. */
export const UPLOAD_RETRY_MS = 10_000;
/** Timeout of an upload of 25 MB: enough at 1 Mbit/s. Ours. */
export const UPLOAD_TIMEOUT_MS = 300_000;
/** An upload without data for this long is aborted. */
export const UPLOAD_IDLE_MS = 30_000;
/** Core unpacks an extension of 512 MiB within this, including those queued before it. Ours. */
export const EXTENSION_CHECK_TIMEOUT_MS = 110_000;
/** Core reads an upload of 512 MiB twice and unpacks 2 GiB within this. Ours. */
export const CONTEXT_VERIFY_TIMEOUT_MS = 110_000;
/** Deadline for the headers of a request. Source: proto/spec/rest.md 5. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** Of an idle connection: above the usual 60 s of a proxy in front, which must close first. */
export const KEEP_ALIVE_MS = 65_000;
/** A connection without bytes in either direction is closed after this. Ours. */
export const SOCKET_IDLE_MS = 120_000;
/** Interval of node's check of the timeouts; with its default of 30 s, headers could take 40 s. */
export const CONNECTION_CHECK_MS = 2_000;
/** In shares by network: a client, or a proxy in front, has 4,096 of them. */
export const CONNECTIONS_MAX = 8_192;
/** After an early answer, such as a 413, the rest of the body is discarded for this long. Ours. */
export const LINGER_MS = 5_000;
/** A connection to a session waits this long for its Chrome. Ours: as long as core's long poll. */
export const LOCATE_MAX_MS = 25_000;
/** Deadline for a connection to a session server. Ours: it is on this machine or in its network. */
export const DIAL_TIMEOUT_MS = 5_000;
/** Deadline for an answer of a session server, except for file uploads. Ours. */
export const SESSION_ANSWER_TIMEOUT_MS = 120_000;
/**
 * In bytes, of a session server's answer. It contains titles and URLs of pages, and is parsed on
 * the main thread. Ours: the protocol description has 1.3 MB.
 */
export const SESSION_ANSWER_MAX_BYTES = 4 << 20;
/** A silent peer of a tunnel is probed after this. Ours. */
export const TUNNEL_KEEP_ALIVE_MS = 20_000;
/** After one side of a tunnel has ended, the other is closed after this without data. Ours. */
export const TUNNEL_LINGER_MS = 30_000;
/** During a drain, the time for clients to receive 1001 and to disconnect. Ours. */
export const TUNNEL_GOODBYE_MS = 2_000;
/** In bytes, before an upgrade is answered. Ours: no known client sends any. */
export const TUNNEL_EARLY_MAX_BYTES = 64 * 1024;
/** A drain aborts the requests in flight after this. Source: proto/spec/rest.md 5. */
export const DRAIN_MAX_MS = 25_000;

export type GatewayConfig = ReturnType<typeof gatewayConfig>;

/** The environment of this process, passed to each role by the command table. */
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
    /** Undefined for a core and runners on this machine, or with certificates that it trusts. */
    coreTls: coreTls(env),
    /** Private address blocks that webhooks may reach, such as `127.0.0.0/8`. */
    webhookAllow: cidrList(webhookAllowCidrs ?? []),
    /** Undefined for plain http. */
    tls: pairFiles(env, 'TABERN_TLS_CERT_FILE', 'TABERN_TLS_KEY_FILE'),
  };
}

/** The gateway token: a setting, or a file of core. Throws a ConfigError when there is none. */
export function gatewayTokenOf({ gatewayToken, dataDir }: GatewayConfig): string {
  if (gatewayToken !== undefined) return gatewayToken;
  const path = join(dataDir, 'keys', 'gateway.token');
  try {
    return readToken(path);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    const denied = noAccess(cause, dataDir);
    if (denied !== undefined) throw new ConfigError(denied, { cause });
    throw new ConfigError(`set TABERN_GATEWAY_TOKEN: cannot read ${path}`, { cause });
  }
}
