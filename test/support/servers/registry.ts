/**
 * A package registry on loopback with one version of each package. It records the requested paths:
 * an install may use it, or must not.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { create } from 'tar';
import { tempDirectory } from '../temp.ts';
import type { Certificate } from './certificates.ts';

export type Registry = AsyncDisposable & {
  /** http://127.0.0.1:port/, or the same by https. */
  url: string;
  port: number;
  /** Paths, in order. */
  asked: string[];
  tarballOf(name: string): string;
  /** sha512 of the tarball, as in lock files. */
  integrityOf(name: string): string;
};

type Options = {
  /** Serves https with this certificate; tarballs are at `host`. */
  tls?: Certificate;
  /** The host in its URLs, with a port if it names one; 127.0.0.1 and its port when absent. */
  host?: string;
  /** Requests for tarballs are redirected there. */
  redirect?: string;
};

export async function openRegistry(
  versions: Record<string, string>,
  { tls, host, redirect }: Options = {},
): Promise<Registry> {
  const tarballs = await tarballsOf(versions);
  const asked: string[] = [];
  const answer: RequestListener = (request, response) => {
    asked.push(request.url ?? '');
    const [path = '', isTarball] = decodeURIComponent(request.url ?? '')
      .slice(1)
      .split('/-/');
    const version = versions[path];
    if (version === undefined) return void response.writeHead(404).end('{}');
    if (isTarball !== undefined) {
      if (redirect !== undefined) return void response.writeHead(302, { location: redirect }).end();
      return void response.end(tarballs.get(path));
    }
    const dist = { tarball: tarballOf(path), integrity: integrityOf(path) };
    const one = { name: path, version, type: 'module', dist };
    const all = { name: path, 'dist-tags': { latest: version }, versions: { [version]: one } };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(all));
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `${tls === undefined ? 'http' : 'https'}://${host ?? `127.0.0.1:${port}`}/`;
  const tarballOf = (name: string): string => `${url}${name}/-/x.tgz`;
  const integrityOf = (name: string): string =>
    `sha512-${createHash('sha512')
      .update(tarballs.get(name) ?? '')
      .digest('base64')}`;
  return {
    url,
    port,
    asked,
    tarballOf,
    integrityOf,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function tarballsOf(versions: Record<string, string>): Promise<Map<string, Buffer>> {
  await using dir = tempDirectory();
  const made = Object.entries(versions).map(async ([name, version]) => {
    return [name, await tarball(dir.path, name, version)] as const;
  });
  return new Map(await Promise.all(made));
}

async function tarball(dir: string, name: string, version: string): Promise<Buffer> {
  const home = join(dir, name);
  mkdirSync(join(home, 'package'), { recursive: true });
  const manifest = { name, version, type: 'module', main: 'index.js' };
  writeFileSync(join(home, 'package', 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(home, 'package', 'index.js'), `export const name = '${name}';`);
  const file = join(home, 'x.tgz');
  await create({ gzip: true, cwd: home, file, portable: true }, ['package']);
  return await readFile(file);
}
