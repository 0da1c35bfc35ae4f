/**
 * `tabern publish <entry>`: packs the current directory, uploads it, and waits until its functions
 * are built.
 */
import { readFile, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { create, type Pack } from 'tar';
import { ARCHIVE_MAX_BYTES } from '../../proto/common/limits.ts';
import { type Api, type Json, logLines, logText, openApi, plain } from './api.ts';
import { type Cli, CliError, type Options, runCli } from './config.ts';
import { ignored } from './ignore.ts';

const EXTENSIONS = /\.[cm]?[jt]s$/;

/** Exit code 0 when the build COMPLETED. */
export function run(argument: string, options: Options): Promise<number> {
  return runCli(options, (cli) => publish(argument, options, cli));
}

export async function publish(argument: string, options: Options, cli: Cli): Promise<number> {
  const entrypoint = await entryOf(argument, cli.cwd);
  const archive = await pack(cli.cwd, entrypoint);
  cli.say(`uploading ${(archive.size / 1024).toFixed(0)} KiB`);
  const api = openApi(cli);
  const form = new FormData();
  form.set('metadata', JSON.stringify({ entrypoint }));
  form.set('archive', archive, 'archive.tar.gz');
  const { id } = await api.post('/v1/functions/builds', form);
  cli.say(`build ${plain(id)}`);
  const build = await follow(api, `/v1/functions/builds/${encodeURIComponent(String(id))}`, cli);
  if (options['json'] === true) cli.print(JSON.stringify(build));
  if (build['status'] !== 'COMPLETED') {
    const { code, message } = (build['cause'] ?? {}) as Json;
    cli.say(`build failed: ${plain(code ?? 'unknown')}${message ? `: ${plain(message)}` : ''}`);
    return 1;
  }
  if (options['json'] !== true) for (const line of built(build)) cli.print(line);
  return 0;
}

/** The entry as the service wants it: relative to the project, with '/' between its parts. */
export async function entryOf(argument: string, cwd: string): Promise<string> {
  const path = relative(cwd, resolve(cwd, argument));
  if (path === '' || path.startsWith('..') || isAbsolute(path)) {
    throw new CliError(`${argument} is outside the current directory; go to the project's`);
  }
  const found = await stat(join(cwd, path)).catch(() => undefined);
  if (!found?.isFile()) throw new CliError(`there is no file ${argument}`);
  if (!EXTENSIONS.test(path)) {
    throw new CliError(`${argument} is not a source file; it must end in .ts, .js, .mts or .mjs`);
  }
  return path.split(sep).join('/');
}

async function pack(cwd: string, entrypoint: string): Promise<Blob> {
  const gitignore = await readFile(join(cwd, '.gitignore'), 'utf8').catch(() => '');
  const isIgnored = ignored(gitignore);
  const names = new Set<string>();
  const stream = create(
    {
      cwd,
      gzip: true,
      portable: true,
      filter: (given, found) => {
        const path = given.replace(/^\.\//, '').replace(/\/$/, '');
        if (path === '.' || path === '') return true;
        const isFolder = 'isDirectory' in found && found.isDirectory();
        const isTaken = !isIgnored(path, isFolder);
        if (isTaken) names.add(path);
        return isTaken;
      },
    },
    ['.'],
  );
  const chunks = await collected(stream);
  if (!names.has(entrypoint)) {
    throw new CliError(`${entrypoint} is not published: .gitignore or a fixed rule leaves it out`);
  }
  return new Blob(chunks, { type: 'application/gzip' });
}

/** The packed bytes. The packer is left alone once they are too many: the command ends then. */
function collected(stream: Pack): Promise<Buffer<ArrayBuffer>[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer<ArrayBuffer>[] = [];
    let bytes = 0;
    stream.on('error', reject);
    stream.on('end', () => resolve(chunks));
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= ARCHIVE_MAX_BYTES) {
        chunks.push(Buffer.from(chunk));
        return;
      }
      stream.pause();
      const limit = `${ARCHIVE_MAX_BYTES / 1024 / 1024} MB`;
      reject(
        new CliError(
          `the project packs to more than ${limit}; list what it does not need in .gitignore`,
        ),
      );
    });
  });
}

/**
 * Says each new line of the build's log until the build ends; the last look comes after its end.
 */
async function follow(api: Api, path: string, cli: Cli): Promise<Json> {
  let said = 0;
  const build = await api.poll(path, async ({ status }) => {
    const lines = logLines(await api.get(`${path}/logs`));
    for (const line of lines.slice(said)) cli.say(logText(line));
    said = Math.max(said, lines.length);
    return status !== 'PENDING' && status !== 'RUNNING';
  });
  return build;
}

function built(build: Json): string[] {
  const functions = build['builtFunctions'];
  if (!Array.isArray(functions)) return [];
  return (functions as Json[]).map(({ name, id, createdVersion }) => {
    const version = (createdVersion as Json | undefined)?.['id'];
    return `${plain(name)}\t${plain(id)}\tversion ${plain(version)}`;
  });
}
