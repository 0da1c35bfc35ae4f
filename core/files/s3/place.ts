/** A bucket: its address, and the keys for it, from the settings TABERN_BLOBS*. */
import { ConfigError } from '../../../proto/common/env.ts';

export type S3Place = {
  bucket: string;
  /** Empty, or ends with a slash. */
  prefix: string;
  /** Without a slash at its end. */
  endpoint: string;
  region: string;
  /** Whether the bucket is in the path or in the host name. */
  style: 'path' | 'host';
  accessKeyId: string;
  secretAccessKey: string;
};

/** As settings/table.ts names them. */
export type S3Settings = {
  blobs: { bucket: string; prefix: string } | undefined;
  blobsEndpoint: string | undefined;
  blobsRegion: string;
  blobsStyle: 'path' | 'host';
  blobsAccessKeyId: string | undefined;
  blobsSecretAccessKey: string | undefined;
};

/** Undefined when blobs are files. Throws ConfigError when a setting is missing. */
export function placeOf(settings: S3Settings): S3Place | undefined {
  const { blobs, blobsRegion: region, blobsStyle: style } = settings;
  if (blobs === undefined) return undefined;
  const { blobsAccessKeyId: accessKeyId, blobsSecretAccessKey: secretAccessKey } = settings;
  if (accessKeyId === undefined) throw missing('TABERN_BLOBS_ACCESS_KEY_ID');
  if (secretAccessKey === undefined) throw missing('TABERN_BLOBS_SECRET_ACCESS_KEY');
  const endpoint = settings.blobsEndpoint ?? `https://s3.${region}.amazonaws.com`;
  return { ...blobs, endpoint, region, style, accessKeyId, secretAccessKey };
}

function missing(name: string): ConfigError {
  return new ConfigError(`TABERN_BLOBS names a bucket, so ${name} must be set, or ${name}_FILE`);
}

/** `s3://bucket/prefix`; empty when blobs are files. */
export function nameOf(place: S3Place | undefined): string {
  return place === undefined ? '' : `s3://${place.bucket}/${place.prefix}`.replace(/\/$/, '');
}

/** The settings of that place, for another process. */
export function environmentOf(place: S3Place | undefined): Record<string, string> {
  if (place === undefined) return {};
  return {
    TABERN_BLOBS: nameOf(place),
    TABERN_BLOBS_ENDPOINT: place.endpoint,
    TABERN_BLOBS_REGION: place.region,
    TABERN_BLOBS_STYLE: place.style,
    TABERN_BLOBS_ACCESS_KEY_ID: place.accessKeyId,
    TABERN_BLOBS_SECRET_ACCESS_KEY: place.secretAccessKey,
  };
}

/** The URL of an object of the bucket; of the bucket itself without a key. */
export function urlIn(place: S3Place, key = '', query: Record<string, string> = {}): URL {
  const { endpoint, bucket, style } = place;
  const url = new URL(endpoint);
  const base = url.pathname.replace(/\/$/, '');
  if (style === 'host') url.hostname = `${bucket}.${url.hostname}`;
  url.pathname = style === 'host' ? `${base}/${key}` : `${base}/${bucket}/${key}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}
