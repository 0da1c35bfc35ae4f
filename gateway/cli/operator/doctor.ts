/**
 * `tabern doctor`: checks the machine, the settings and the stored data. Prints one line per check,
 * with a fix where there is one; the exit code is 1 when a check fails.
 */
import { randomUUID, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { get as getTls } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { type Finding, fail, ok, warn } from '../../../proto/common/diagnostics.ts';
import { ConfigError, type Env } from '../../../proto/common/env.ts';
import { sizeText } from '../../../proto/terminal/size.ts';
import { styled } from '../../../proto/terminal/text.ts';
import { type GatewayConfig, gatewayConfig } from '../../config.ts';
import { EXIT } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { print } from './terminal.ts';

type Look = (env: Env, options: { isDeep: boolean }) => AsyncIterable<Finding>;

const MIB = 1 << 20;
/** In bytes: uploads are stored there while they arrive. */
const TEMP_MIN_BYTES = 512 * MIB;
const HEALTH_TIMEOUT_MS = 5_000;
/** Automatic renewal usually replaces a certificate a month before it expires. */
const RENEW_WITHIN_MS = 14 * 86_400_000;
const WIDTH = 11;

/** The checks of core, of the runner and of the gateway. */
export async function doctor(
  given: Given,
  { env, checkData, checkMachine }: { env: Env; checkData: Look; checkMachine: Look },
): Promise<number> {
  const looks: Look[] = [checkData, checkGateway, checkMachine];
  const found: Finding[] = [];
  const isJson = given['json'] === true;
  const isDeep = given['deep'] === true;
  const place = typeof given['data'] === 'string' ? { TABERN_DATA: given['data'] } : {};
  for (const look of looks) {
    for await (const finding of look({ ...env, ...place }, { isDeep })) {
      found.push(finding);
      if (!isJson) print(lineOf(finding));
    }
  }
  const isFit = found.every(({ level }) => level !== 'fail');
  if (isJson) print(JSON.stringify({ isFit, findings: found }));
  return isFit ? 0 : EXIT.failed;
}

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

function lineOf({ check, level, says, fix }: Finding): string {
  const shown = styled(STYLES[level], level.padEnd(4), process.stdout);
  const line = `${shown}  ${check.padEnd(WIDTH)} ${says}`;
  return fix === undefined ? line : `${line}\n      ${' '.repeat(WIDTH)} -> ${fix}`;
}

async function* checkGateway(env: Env): AsyncGenerator<Finding> {
  let config: GatewayConfig;
  try {
    config = gatewayConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield fail('settings', error.message, '`tabern config` shows every setting and its source');
    return;
  }
  yield await port(config);
  if (config.tls) yield certificate(config.tls.cert.path, Date.now());
  yield await temp();
}

async function port(config: GatewayConfig): Promise<Finding> {
  const { host, port } = config;
  const place = `${host}:${port}`;
  const server = createServer();
  server.listen(port, host);
  try {
    await once(server, 'listening');
    server.close();
    return ok('port', `${place} is free`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE') {
      return fail('port', `cannot listen on ${place} (${code})`, 'set TABERN_HOST and TABERN_PORT');
    }
    if (await isTabern(config)) return ok('port', `${place} is served by tabern`);
    return fail('port', `${place} is in use`, 'stop the process that uses it, or set TABERN_PORT');
  }
}

/** Whether the server at this address is tabern. Our own certificate may be for another host. */
async function isTabern({ host, port, tls }: GatewayConfig): Promise<boolean> {
  const hostname = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
  const options = { hostname, port, path: '/healthz', signal, agent: false as const };
  const call = tls ? getTls({ ...options, rejectUnauthorized: false }) : get(options);
  try {
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    const { status } = (await json(response)) as { status?: unknown };
    return status === 'ok';
  } catch {
    return false; // any failure: not tabern
  } finally {
    call.destroy();
  }
}

/** Checks the certificate of HTTP. `at`: now. */
export function certificate(certFile: string, at: number): Finding {
  const fix = `renew ${certFile}, then \`kill -HUP\` the service`;
  try {
    const { validTo } = new X509Certificate(readFileSync(certFile));
    const leftMs = Date.parse(validTo) - at;
    const says = `valid until ${new Date(validTo).toISOString().slice(0, 10)}`;
    if (leftMs <= 0) return fail('tls', `no longer ${says}`, fix);
    return leftMs < RENEW_WITHIN_MS ? warn('tls', says, fix) : ok('tls', says);
  } catch (error) {
    return fail('tls', `no certificate in ${certFile} (${(error as Error).message})`, fix);
  }
}

async function temp(): Promise<Finding> {
  const place = tmpdir();
  const path = join(place, `tabern-doctor-${randomUUID()}`);
  const fix = 'set TMPDIR to a writable directory with free space';
  try {
    await writeFile(path, 'x', { flag: 'wx' });
    const { bavail, bsize } = await statfs(place);
    const says = `${place}, ${sizeText(bavail * bsize)} free`;
    return bavail * bsize < TEMP_MIN_BYTES ? warn('temp', says, fix) : ok('temp', says);
  } catch (error) {
    return fail('temp', `cannot write into ${place} (${(error as Error).message})`, fix);
  } finally {
    await rm(path, { force: true }).catch(() => undefined); // when nothing could be written
  }
}
