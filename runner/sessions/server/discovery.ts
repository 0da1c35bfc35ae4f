/**
 * Serves Chrome's /json routes for one session: its targets, and what drivers request before they
 * connect. Socket addresses are added by the gateway.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Fault } from '../../../proto/rpc/errors.ts';
import { isOpenUrl } from '../../browser/cdp/command-policy.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import type { Chrome } from '../../browser/launch.ts';

type TargetInfo = Record<'targetId' | 'type' | 'title' | 'url', string>;

/** A page's data: URL may have megabytes. Drivers use the id and the socket's address. */
const URL_MAX_CHARS = 8_192;

/** Undefined: no such route. A Buffer is JSON already. */
export function discoveryOf(
  method: string,
  url: URL,
): ((chrome: Pick<Chrome, 'pipe'>) => Promise<unknown>) | undefined {
  const { pathname, searchParams } = url;
  const [, act, id = ''] = /^\/json\/(activate|close)\/([\w-]+)$/.exec(pathname) ?? [];
  if (method === 'PUT' && pathname === '/json/new') {
    return ({ pipe }) => open(pipe, searchParams.get('url') || 'about:blank');
  }
  if (method !== 'GET') return undefined;
  if (pathname === '/json/list') return ({ pipe }) => list(pipe);
  if (pathname === '/json/protocol') return protocol;
  if (act === 'activate') return ({ pipe }) => onTarget(pipe, 'Target.activateTarget', id);
  if (act === 'close') return ({ pipe }) => onTarget(pipe, 'Target.closeTarget', id);
  return undefined;
}

async function list(pipe: Pipe): Promise<object[]> {
  const { targetInfos } = await pipe.call('Target.getTargets');
  return (targetInfos as TargetInfo[]).map(described);
}

async function open(pipe: Pipe, url: string): Promise<object> {
  if (!isOpenUrl(url)) {
    throw new Fault('MALFORMED_REQUEST', 'The address of the new page cannot be opened.');
  }
  const { targetId } = await pipe.call('Target.createTarget', { url });
  const { targetInfo } = await pipe.call('Target.getTargetInfo', { targetId });
  return described(targetInfo as TargetInfo);
}

async function onTarget(pipe: Pipe, method: string, targetId: string): Promise<object> {
  try {
    await pipe.call(method, { targetId });
    return {};
  } catch (cause) {
    throw new Fault('ROUTE_NOT_FOUND', `No such target id: ${targetId}`, {}, cause);
  }
}

function described({ targetId: id, type, title, url }: TargetInfo): object {
  return { id, type, title, url: url.slice(0, URL_MAX_CHARS), description: '' };
}

/**
 * Chrome's pipe cannot provide the protocol; this is the one of the npm package, stable part and
 * beyond.
 */
function protocol(): Promise<Buffer> {
  text ??= readProtocol().catch((error: unknown) => {
    text = undefined;
    throw error;
  });
  return text;
}

/** The same for every Chrome: read and minified once. */
let text: Promise<Buffer> | undefined;

async function readProtocol(): Promise<Buffer> {
  const path = createRequire(import.meta.url).resolve('chrome-remote-interface/lib/protocol.json');
  return Buffer.from(JSON.stringify(JSON.parse(await readFile(path, 'utf8'))));
}
