/**
 * The network settings of the operator's npm configuration, read as npm and pnpm do: registries and
 * proxy. Settings of a project are ignored.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Env } from '../../../proto/common/env.ts';

/** npm's default. */
const REGISTRY = 'https://registry.npmjs.org';
/** npm's mirror of jsr. Source: https://jsr.io/docs/npm-compatibility */
export const JSR_REGISTRY = 'https://npm.jsr.io';
export const JSR_SETTING = '@jsr:registry';
const DEFAULTS = { registry: REGISTRY, [JSR_SETTING]: JSR_REGISTRY };
const NAMES_REGISTRY = /^(?:@[^:]+:)?registry$/;
/** Values that mean no proxy. */
const UNSET = ['', 'null', 'false'];
const DEFAULT_PORTS: Record<string, string> = { 'http:': '80', 'https:': '443' };

export type NpmSettings = {
  /** host:port of each registry. */
  registries: ReadonlySet<string>;
  /** Whether the operator names a registry for packages of jsr. */
  namesJsr: boolean;
  /** The proxy of all requests. */
  proxy: string | undefined;
  /** The proxy of http: requests, used without `proxy`. */
  plainProxy: string | undefined;
  /** Domains that are reached without a proxy. */
  noProxy: readonly string[];
};

/** Paths of the operator's settings files, which may not exist. */
export function settingsFiles(env: Env): { user: string | undefined; global: string | undefined } {
  const home = env['HOME'] ? join(env['HOME'], '.npmrc') : undefined;
  return { user: env['npm_config_userconfig'] ?? home, global: env['npm_config_globalconfig'] };
}

export async function readNpmSettings(env: Env): Promise<NpmSettings> {
  const { user, global } = settingsFiles(env);
  const texts = await Promise.all([global, user].map(read));
  const registry = env['npm_config_registry'];
  const entries = texts.flatMap(entriesOf);
  const given = new Map(registry ? [...entries, ['registry', registry]] : entries);
  const places = [...new Map([...Object.entries(DEFAULTS), ...given])]
    .filter(([name]) => NAMES_REGISTRY.test(name))
    .flatMap(([, url]) => placeOf(url));
  const variable = (name: string): string | undefined =>
    env[name] || env[name.toUpperCase()] || undefined;
  const setting = (name: string): string | undefined => {
    const value = given.get(name) ?? '';
    return UNSET.includes(value) ? undefined : value;
  };
  const noProxy = setting('noproxy') ?? variable('no_proxy') ?? '';
  const domains = noProxy.split(',').map((domain) => domain.trim().replace(/^\.+|\.+$/g, ''));
  return {
    registries: new Set(places),
    namesJsr: given.has(JSR_SETTING),
    proxy: setting('https-proxy') ?? setting('proxy') ?? variable('https_proxy'),
    plainProxy: variable('http_proxy'),
    noProxy: domains.filter((domain) => domain !== ''),
  };
}

/** Empty for a missing or unreadable file, as for npm. */
async function read(file: string | undefined): Promise<string> {
  return file === undefined ? '' : readFile(file, 'utf8').catch(() => '');
}

type Entry = [name: string, value: string];

/** Parses lines of `name = value` as npm does, with quotes and trailing comments. */
function entriesOf(text: string): Entry[] {
  return text.split(/\r?\n/).flatMap((line): Entry[] => {
    const [, name, value] = /^\s*([^=;#\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[unquoted(name), unquoted(value)]];
  });
}

function unquoted(text: string): string {
  const [, , inner] = /^(["'])(.*)\1$/.exec(text) ?? [];
  return (
    inner ??
    text
      .replace(/(?<!\\)[;#].*$/, '')
      .replace(/\\([\\;#])/g, '$1')
      .trim()
  );
}

/** host:port of a registry's URL, as a request names it; empty for an invalid URL. */
function placeOf(text: string): string[] {
  const url = URL.parse(text);
  const port = url === null ? undefined : url.port || DEFAULT_PORTS[url.protocol];
  return url === null || port === undefined ? [] : [`${url.hostname}:${port}`];
}
