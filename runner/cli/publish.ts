/**
 * `tabern publish <entry>`: packs the current directory, uploads it, and waits until its functions
 * are built.
 */
import { readFile, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import ignore from 'ignore';
import { create, type Pack } from 'tar';
import { ARCHIVE_MAX_BYTES } from '../../proto/common/limits.ts';
import { openSpinner } from '../../proto/terminal/progress.ts';
import { sizeText } from '../../proto/terminal/size.ts';
import { plain } from '../../proto/terminal/text.ts';
import { type Api, failureText, follow, type Json, logText, openApi } from './api.ts';
import { type Cli, CliError, command, type Options } from './config.ts';

const EXTENSIONS = /\.[cm]?[jt]s$/;
/** Never packed: secrets, build outputs, the data of a service that was started in the project. */
const ALWAYS_IGNORED = [
  ...['node_modules/', '.git/', '.browserbase/', '/tabern_data/', '/dist/', '/build/'],
  ...['.env*', '*.log', '.npmrc'],
];

/** Exit code 0 when the build COMPLETED. */
export const run = command(publish);

export async function publish(argument: string, options: Options, cli: Cli): Promise<number> {
  const entrypoint = await entryOf(argument, cli.cwd);
  const archive = await pack(cli.cwd, entrypoint);
  cli.say(`uploading ${sizeText(archive.size)}`);
  const api = openApi(cli);
  const form = new FormData();
  form.set('metadata', JSON.stringify({ entrypoint }));
  form.set('archive', archive, 'archive.tar.gz');
  const build = await built(form, api, cli);
  if (options['json'] === true) cli.print(JSON.stringify(build));
  if (build['status'] !== 'COMPLETED') {
    cli.say(failureText('build', build));
    return 1;
  }
  if (options['json'] !== true) for (const line of functionLines(build)) cli.print(line);
  return 0;
}

/** Uploads, and prints the log of the build until its end. */
async function built(form: FormData, api: Api, cli: Cli): Promise<Json> {
  using spinner = openSpinner('building');
  const say = (line: string) => {
    spinner.pause();
    cli.say(line);
  };
  const { id } = await api.post('/v1/functions/builds', form);
  say(`build ${plain(id)}`);
  const path = `/v1/functions/builds/${encodeURIComponent(String(id))}`;
  return await follow(api, path, (line) => say(logText(line, process.stderr)));
}

/** The entry's path as the service expects it: relative to the project, separated by '/'. */
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

/** Throws when the archive is too large; the packer is not awaited then. */
async function collected(stream: Pack): Promise<Buffer<ArrayBuffer>[]> {
  const chunks: Buffer<ArrayBuffer>[] = [];
  let bytes = 0;
  stream.on('error', () => undefined); // the loop throws it; after the loop, nothing needs it
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > ARCHIVE_MAX_BYTES) {
      const limit = `${ARCHIVE_MAX_BYTES / 1024 / 1024} MB`;
      throw new CliError(
        `the project packs to more than ${limit}; list what it does not need in .gitignore`,
      );
    }
    chunks.push(Buffer.from(chunk));
  }
  return chunks;
}

/** Whether a path, relative to the project and separated by '/', is not packed. Pure. */
export function ignored(gitignore: string): (path: string, isFolder: boolean) => boolean {
  // case-sensitive, as git on Linux; the last rule that matches decides
  const rules = ignore({ ignorecase: false }).add(gitignore).add(ALWAYS_IGNORED);
  return (path, isFolder) => rules.ignores(isFolder ? `${path}/` : path);
}

function functionLines(build: Json): string[] {
  const functions = build['builtFunctions'];
  if (!Array.isArray(functions)) return [];
  return (functions as Json[]).map(({ name, id, createdVersion }) => {
    const version = (createdVersion as Json | undefined)?.['id'];
    return `${plain(name)}\t${plain(id)}\tversion ${plain(version)}`;
  });
}
