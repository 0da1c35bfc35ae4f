/**
 * Core's settings: read once, refused with an explanation when invalid, printed at start without
 * secrets.
 */
import { ConfigError, type Env, type Place, text } from '../proto/common/env.ts';
import { readSettings } from '../proto/common/settings/read.ts';
import { sourceOf } from '../proto/common/settings/sources.ts';
import { isLoopback } from '../proto/network/loopback.ts';
import {
  type PemFile,
  pairFiles,
  pemFile,
  readAuthorities,
  type TlsFiles,
} from '../proto/tls/pem-files.ts';
import type { Rule } from './delivery/disable.ts';
import { placeOf } from './files/s3/place.ts';
import type { QuotaLimits } from './projects/quotas.ts';

const HOUR_MS = 3_600_000;

export type CoreConfig = ReturnType<typeof readCoreConfig>;

/** Throws ConfigError for an invalid value. */
export function readCoreConfig(env: Env) {
  const settings = readSettings(env, 'core');
  const { data, contextsMax, contextMib, downloadMib, recordingMib, ...others } = settings;
  const { uploadMib, logMib, webhookAllowCidrs = [], webhookRate, ...more } = others;
  const { webhookDisableAfter: hours, webhookDisableSilence: silence, ...most } = more;
  const { operatorToken, gatewayToken, runnerToken, ...few } = most;
  const { operatorTokenNext, gatewayTokenNext, runnerTokenNext, ...network } = few;
  const { coreListen, coreTlsCertFile, coreTlsKeyFile, coreClientCaFile, ...stored } = network;
  const { blobs, blobsEndpoint, blobsRegion, blobsStyle, ...keyed } = stored;
  const { blobsAccessKeyId, blobsSecretAccessKey, ...located } = keyed;
  const place = { blobs, blobsEndpoint, blobsRegion, blobsStyle };
  const { databaseUrl, databaseDirectUrl, databasePooled, ...rest } = located;
  const sizes = { contextMib, downloadMib, recordingMib, uploadMib, logMib };
  const quotas: QuotaLimits = { contexts: contextsMax, ...sizes };
  const webhookRule: Rule = { disableAfterMs: hours * HOUR_MS, silence: silence === 'on' };
  return {
    ...rest,
    dataDir: data,
    /** The bucket of the blobs; undefined when they are files. */
    bucket: placeOf({ ...place, blobsAccessKeyId, blobsSecretAccessKey }),
    /** Undefined: a file in the data directory. */
    database: databaseOf(env, [databaseUrl, databaseDirectUrl], databasePooled === 'on'),
    /** Default quotas of a project. */
    quotas,
    /** Addresses that webhooks may use in addition to public ones. */
    webhookAllowCidrs,
    webhookRule,
    webhookRatePerS: webhookRate,
    crashAt: crashAt(env),
    /** For roles on other machines; undefined: the socket file alone. */
    network: networkOf(env, coreListen),
    /** Undefined members are files of the data directory. */
    tokens: { operator: operatorToken, gateway: gatewayToken, runner: runnerToken },
    /** Accepted besides, while tokens are changed. */
    nextTokens: { operator: operatorTokenNext, gateway: gatewayTokenNext, runner: runnerTokenNext },
  };
}

/** The configuration without secrets. */
export function printable(config: CoreConfig): Record<string, unknown> {
  const { tokens, nextTokens, ...rest } = config;
  const shown = (secret: unknown) => (secret === undefined ? undefined : '(set)');
  const bucket = config.bucket && { ...config.bucket, secretAccessKey: '(set)' };
  const database = shown(config.database);
  return { ...rest, apiKey: shown(config.apiKey), bucket, database };
}

export type CoreNetwork = {
  listen: Place;
  /** Undefined on loopback only. */
  tls: TlsFiles | undefined;
  clientCa: PemFile | undefined;
};

/** Tokens and keys pass this address: only on loopback may they be in the clear. */
function networkOf(env: Env, listen: Place | undefined): CoreNetwork | undefined {
  const tls = pairFiles(env, 'TABERN_CORE_TLS_CERT_FILE', 'TABERN_CORE_TLS_KEY_FILE');
  const clientCa = pemFile(env, 'TABERN_CORE_CLIENT_CA_FILE');
  if (clientCa !== undefined && tls === undefined) {
    throw new ConfigError(
      `${clientCa.source} goes together with TABERN_CORE_TLS_CERT_FILE and ` +
        'TABERN_CORE_TLS_KEY_FILE: set all three',
    );
  }
  if (listen === undefined) return undefined;
  if (tls === undefined && !isLoopback(listen.host)) {
    const { label } = sourceOf(env, 'TABERN_CORE_LISTEN') ?? { label: 'TABERN_CORE_LISTEN' };
    throw new ConfigError(
      `${label} needs TLS on ${listen.host}: set TABERN_CORE_TLS_CERT_FILE and ` +
        'TABERN_CORE_TLS_KEY_FILE (`tabern certs create core` makes them)',
    );
  }
  return { listen, tls, clientCa };
}

/** Both URLs may have a password. `ca`: authorities in PEM, by which servers are verified. */
function databaseOf(
  env: Env,
  [url, directUrl = url]: readonly [url: string | undefined, directUrl: string | undefined],
  isPooled: boolean,
) {
  const file = pemFile(env, 'TABERN_DATABASE_CA_FILE');
  if (url === undefined || directUrl === undefined) {
    const given = directUrl === undefined ? file?.source : 'TABERN_DATABASE_DIRECT_URL';
    if (given === undefined) return undefined;
    throw new ConfigError(`${given} needs TABERN_DATABASE_URL: set both`);
  }
  const isPlain = [url, directUrl].some((one) => /[?&]sslmode=disable\b/.test(one));
  if (file !== undefined && isPlain) {
    throw new ConfigError(`${file.source} needs TLS: remove sslmode=disable from the URL`);
  }
  const ca = file && readAuthorities(file).toString('latin1');
  return { url, directUrl, isPooled, ca };
}

/** TABERN_CRASH_AT, `name:n`: for fault tests only. */
function crashAt(env: Env): string | undefined {
  const point = text(env, 'TABERN_CRASH_AT');
  if (point === undefined) return undefined;
  if (env['NODE_ENV'] === 'production') {
    throw new ConfigError('TABERN_CRASH_AT is for fault tests; unset it in production');
  }
  if (!/^[a-z-]+:[1-9]\d*$/.test(point)) {
    throw new ConfigError('TABERN_CRASH_AT must look like before-commit:3');
  }
  return point;
}
