/** The settings and the terminal of a command, read once before the command starts. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { ConfigError, type Env, text } from '../../proto/common/env.ts';
import { readSetting } from '../../proto/common/settings/read.ts';
import { styled } from '../../proto/terminal/text.ts';

/** Ours: short next to a build, which takes seconds. */
const POLL_MS = 300;

const BROWSER_TOOLS_VARIABLE =
  /^(?:PLAYWRIGHT_MCP_\w+|NODE_EXTRA_CA_CERTS|https?_proxy|no_proxy)$/i;

export type Options = Readonly<Record<string, string | boolean | undefined>>;

export type Terminal = {
  cwd: string;
  /** Prints a line of the result to stdout. */
  print(line: string): void;
  /** Prints a message to stderr. */
  say(line: string): void;
};

export type Cli = Terminal & {
  /** Without a slash at its end and without credentials. */
  baseUrl: string;
  apiKey: string;
  /** The pause between two polls of a build or an invocation. */
  pollMs: number;
  /** Of this user, for what commands keep between their runs. Throws without a home directory. */
  userDir(): string;
};

/** An error that the user can fix: the command prints its message and exits 1. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** Options win over variables. Throws a ConfigError that names the setting to change. */
export function openCli(options: Options, env: Env = process.env): Cli {
  const apiKey = option(options, 'apiKey') ?? text(env, 'TABERN_API_KEY');
  if (apiKey === undefined) {
    throw new ConfigError(
      'no API key: set TABERN_API_KEY to the key that the service printed at its start, ' +
        'or create one with `tabern keys create default`',
    );
  }
  // The key is sent in a header; for an invalid one, fetch reports a failed connection.
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new ConfigError('the API key has spaces, line breaks or other characters no key has');
  }
  const given = option(options, 'baseUrl') ?? readSetting(env, 'BASE_URL') ?? localUrl(env);
  const url = httpUrl(given);
  if (url?.search !== '' || url.hash !== '') {
    throw new ConfigError('the URL of the service must look like http://127.0.0.1:4747');
  }
  const baseUrl = url.href.replace(/\/+$/, '');
  return { ...openTerminal(), baseUrl, apiKey, pollMs: POLL_MS, userDir: () => userDirectory(env) };
}

/** As the XDG Base Directory Specification has it, for state of programs: no relative path. */
function userDirectory(env: Env): string {
  const given = text(env, 'XDG_STATE_HOME') ?? '';
  return join(isAbsolute(given) ? given : join(homedir(), '.local/state'), 'tabern');
}

/** Variables for the process of @playwright/mcp: its own settings, certificates, proxies. */
export function browserToolsEnv(env: Env = process.env): Record<string, string> {
  const passed = Object.entries(env).filter(([name]) => BROWSER_TOOLS_VARIABLE.test(name));
  return Object.fromEntries(passed.map(([name, value]) => [name, value ?? '']));
}

function openTerminal(): Terminal {
  return {
    cwd: process.cwd(),
    print: (line) => process.stdout.write(`${line}\n`),
    say: (line) => process.stderr.write(`${line}\n`),
  };
}

/**
 * Runs a command that calls the service. The exit code is 1 for an error that the user or the
 * service must fix, 2 for a wrong call.
 */
export function runCli(options: Options, act: (cli: Cli) => Promise<number>): Promise<number> {
  return exitCode(() => act(openCli(options)));
}

/** The `run` of a command with arguments and options. */
export function command<Argument>(
  act: (argument: Argument, options: Options, cli: Cli) => Promise<number>,
) {
  return (argument: Argument, options: Options): Promise<number> =>
    runCli(options, (cli) => act(argument, options, cli));
}

/** As runCli, for a command that calls no service. */
export function runHere(act: (terminal: Terminal, env: Env) => Promise<number>): Promise<number> {
  return exitCode(() => act(openTerminal(), process.env));
}

async function exitCode(act: () => Promise<number>): Promise<number> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof CliError)) throw error;
    process.stderr.write(`${styled('red', error.message, process.stderr)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
}

/** Aborts at the first of these signals, such as SIGINT for Ctrl-C. */
export function signalOf(...signals: readonly NodeJS.Signals[]): AbortSignal {
  const ended = new AbortController();
  for (const signal of signals) process.once(signal, () => ended.abort());
  return ended.signal;
}

/** The trimmed value; undefined when the option is absent or blank. */
export function option(options: Options, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value.trim() || undefined : undefined;
}

/** An http or https URL without credentials; undefined for any other text. */
export function httpUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  return url.username === '' && url.password === '' ? url : undefined;
}

/** The URL at which `tabern serve` listens. */
function localUrl(env: Env): string {
  const host = readSetting(env, 'HOST');
  const isAny = host === '0.0.0.0' || host === '::';
  const name = isAny ? '127.0.0.1' : host;
  const port = readSetting(env, 'PORT');
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}
