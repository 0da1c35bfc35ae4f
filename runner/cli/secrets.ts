/**
 * `tabern secrets`: lists, stores, deletes and attaches secrets of functions, by their names. A
 * value is read from stdin, a file or the terminal, never from the arguments, which other users of
 * the machine can read. It is sealed here: only the sealed value is sent.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ConfigError } from '../../proto/common/env.ts';
import { columns } from '../../proto/common/text-table.ts';
import { plain } from '../../proto/terminal/text.ts';
import { type Api, isObject, type Json, openApi } from './api.ts';
import { CliError, type Options, option, runCli } from './config.ts';
import { functionIdOf } from './offset-pages.ts';

/** In bytes. Source: proto/spec/functions.md 11, without the 48 bytes that sealing adds. */
const VALUE_MAX_BYTES = 65_488;
/** As many as a project has. Source: proto/spec/functions.md 11. */
const PAGE = 100;

type Given = { api: Api; words: readonly string[]; options: Options };
/** Resolves with the JSON that is printed, or the lines for people. */
const ACTIONS = { list, set, delete: remove, attach, detach };

/** `usage`: an action, and its arguments in `words`. Exit code 0 when the request succeeded. */
export function run(usage: string, words: readonly string[], options: Options): Promise<number> {
  const action = ACTIONS[usage.split(' ')[0] as keyof typeof ACTIONS];
  return runCli(options, async (cli) => {
    const { json, text } = await action({ api: openApi(cli), words, options });
    cli.print(options['json'] === true ? JSON.stringify(json) : text);
    return 0;
  });
}

async function list({ api }: Given) {
  const rows = await secretsOf(api);
  const cells = rows.map(({ id, secretKey }) => [id, secretKey]);
  return { json: rows, text: columns(['ID', 'NAME'], cells) };
}

async function set({ api, words: [name = ''], options }: Given) {
  const value = await readValue(name, options);
  if (value.length === 0) throw new ConfigError('the value is empty');
  if (value.length > VALUE_MAX_BYTES) {
    throw new ConfigError(`the value is longer than ${VALUE_MAX_BYTES} bytes`);
  }
  const sealed = await sealedFor(api, value);
  const old = await find(api, name);
  return written(
    old === undefined
      ? await api.post('/v1/secrets', { secretKey: name, ...sealed })
      : await api.patch(`/v1/secrets/${old}`, sealed),
  );
}

async function remove({ api, words: [name = ''] }: Given) {
  const id = await idOf(api, name);
  await api.remove(`/v1/secrets/${id}`);
  return written({ id });
}

async function attach({ api, words }: Given) {
  const { secretId, path } = await pairOf(api, words);
  await api.post(path, { secretId });
  return written({ id: secretId });
}

async function detach({ api, words }: Given) {
  const { secretId, path } = await pairOf(api, words);
  await api.remove(`${path}/${secretId}`);
  return written({ id: secretId });
}

function written(json: Json) {
  return { json, text: String(json['id']) };
}

async function pairOf(api: Api, [name = '', functionName = '']: readonly string[]) {
  const secretId = await idOf(api, name);
  return { secretId, path: `/v1/functions/${await functionIdOf(api, functionName)}/secrets` };
}

async function idOf(api: Api, name: string): Promise<string> {
  const id = await find(api, name);
  if (id !== undefined) return id;
  const shownName = plain(JSON.stringify(name));
  throw new CliError(`there is no secret ${shownName}; \`tabern secrets list\` shows the names`);
}

async function find(api: Api, name: string): Promise<string | undefined> {
  const rows = await secretsOf(api);
  const found = rows.find(({ secretKey }) => secretKey === name);
  return found === undefined ? undefined : encodeURIComponent(String(found['id']));
}

async function secretsOf(api: Api): Promise<Json[]> {
  const { data } = await api.get(`/v1/secrets?limit=${PAGE}`);
  return Array.isArray(data) ? data.filter(isObject) : [];
}

async function sealedFor(api: Api, value: Buffer): Promise<Json> {
  const { id, publicKey } = await api.get('/v1/secrets/keypair');
  const { seal } = await import('../../proto/sealing/hpke.ts');
  const sealed = await seal(Buffer.from(String(publicKey), 'base64'), value);
  return { keypairId: id, sealedSecretValue: Buffer.from(sealed).toString('base64') };
}

/** Of the file or of stdin, unchanged but for one line break at the end; or a typed line. */
async function readValue(name: string, options: Options): Promise<Buffer> {
  const path = option(options, 'fromFile');
  if (path === undefined && process.stdin.isTTY) return await typed(name);
  const bytes = path === undefined ? await all(process.stdin) : await fileOf(path);
  const end = /\r?\n$/.exec(bytes.subarray(-2).toString('latin1'))?.[0].length ?? 0;
  return bytes.subarray(0, bytes.length - end);
}

async function fileOf(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new ConfigError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Stops reading behind the limit. */
async function all(input: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > VALUE_MAX_BYTES + 2) break;
  }
  return Buffer.concat(chunks);
}

/** A line of the terminal. Without an output, readline echoes nothing. */
async function typed(name: string): Promise<Buffer> {
  const lines = createInterface({ input: process.stdin, terminal: true });
  // after readline has turned the terminal's own echo off
  process.stderr.write(`value of ${plain(name)} (not shown): `);
  try {
    const closed = once(lines, 'close').then(() => '');
    const [line = ''] = await Promise.race([once(lines, 'line'), closed.then((text) => [text])]);
    return Buffer.from(String(line));
  } finally {
    lines.close();
    process.stderr.write('\n');
  }
}
