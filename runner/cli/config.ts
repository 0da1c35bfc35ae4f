/**
 * What every command needs: where the service is, the key, and the terminal. Read once, before
 * anything happens.
 */
import { ConfigError, type Env, text } from '../../proto/common/env.ts';
import { readSetting } from '../../proto/common/settings/read.ts';

/** Ours: a build of seconds is not held up by it. */
const POLL_MS = 300;

export type Options = Readonly<Record<string, string | boolean | undefined>>;

/** Where a command runs, and who reads what it says. */
export type Terminal = {
  cwd: string;
  /** Answers: one line on stdout. */
  print(line: string): void;
  /** Messages to people: one line on stderr. */
  say(line: string): void;
};

export type Cli = Terminal & {
  /** Without a slash at its end and without credentials. */
  baseUrl: string;
  apiKey: string;
  /** Between two looks at something that is under way. */
  pollMs: number;
};

/** Options win over variables. Throws a ConfigError that says what to set. */
export function openCli(options: Options, env: Env = process.env): Cli {
  const apiKey = given(options, 'apiKey') ?? text(env, 'TABERN_API_KEY');
  if (apiKey === undefined) {
    throw new ConfigError(
      'no API key: set TABERN_API_KEY to the key that `tabern serve` printed at its first start',
    );
  }
  // It travels in a header; fetch would call it a failed connection.
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new ConfigError('the API key has spaces, line breaks or other characters no key has');
  }
  return {
    baseUrl: baseUrl(given(options, 'baseUrl') ?? readSetting(env, 'BASE_URL') ?? local(env)),
    apiKey,
    ...openTerminal(),
    pollMs: POLL_MS,
  };
}

function openTerminal(): Terminal {
  return {
    cwd: process.cwd(),
    print: (line) => process.stdout.write(`${line}\n`),
    say: (line) => process.stderr.write(`${line}\n`),
  };
}

/**
 * Runs a command; the exit code is 0, 1 for what the service or the author has to mend, 2 for a
 * wrong call.
 */
export function runCli(options: Options, command: (cli: Cli) => Promise<number>): Promise<number> {
  return coded(() => command(openCli(options)));
}

/** As runCli, for a command that calls no service; it gets the environment. */
export function runHere(
  command: (terminal: Terminal, env: Env) => Promise<number>,
): Promise<number> {
  return coded(() => command(openTerminal(), process.env));
}

async function coded(command: () => Promise<number>): Promise<number> {
  try {
    return await command();
  } catch (error) {
    if (error instanceof ConfigError) return complain(error, 2);
    if (error instanceof CliError) return complain(error, 1);
    throw error;
  }
}

/** Something that the person at the terminal can mend. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

function complain(error: Error, code: number): number {
  process.stderr.write(`${error.message}\n`);
  return code;
}

function given(options: Options, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

/** As `tabern serve` listens. */
function local(env: Env): string {
  const host = readSetting(env, 'HOST');
  const isAny = host === '0.0.0.0' || host === '::';
  const name = isAny ? '127.0.0.1' : host;
  const port = readSetting(env, 'PORT');
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function baseUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (!url || !isHttp || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new ConfigError('the URL of the service must look like http://127.0.0.1:4747');
  }
  return url.href.replace(/\/+$/, '');
}
