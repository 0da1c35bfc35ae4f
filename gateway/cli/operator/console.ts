/**
 * `tabern console`: prints a link that logs a browser in to the console, and opens it. The link has
 * a one-time code in its fragment, which browsers do not send: no log of a proxy has it. With
 * `--operator` the login sees all projects; the operator token itself is never given to a browser.
 */
import { spawn } from 'node:child_process';
import type { Env } from '../../../proto/common/env.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import type { Project } from '../../../proto/gen/tabern/v1/projects.pb.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { withCore } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

type Code = { code: string; expiresAt: Date | undefined; project?: Project | undefined };

export async function openConsole(_: string, given: Given, env: Env): Promise<number> {
  const { code, expiresAt, project } = await codeOf(given, env);
  const link = `${addressOf(given, env)}/console/login#code=${code}`;
  return answer(given, { link, projectId: project?.id, expiresAt }, () => {
    const what =
      project === undefined ? 'console of the operator' : `console of project ${project.name}`;
    note(`${what}; the link is valid for 60 s and one login:`);
    print(link);
    if (given['open'] !== false && hasDesktop(env)) open(link);
  });
}

/** `project` is undefined for an operator login. */
async function codeOf(given: Given, env: Env): Promise<Code> {
  const { project, operator } = given;
  if (operator !== true) {
    const named = typeof project === 'string' ? project : 'default';
    return withCore(given, env, ({ operators, call }) =>
      operators.createConsoleCode({ project: named }, call),
    );
  }
  if (project !== undefined) {
    throw new Exit(EXIT.config, '--operator sees all projects: leave out --project');
  }
  return withCore(given, env, ({ operators, call }) => operators.createOperatorCode({}, call));
}

/** As clients know it: a flag, TABERN_BASE_URL, TABERN_PUBLIC_URL, or the service's own address. */
function addressOf(given: Given, env: Env): string {
  const { baseUrl } = given;
  const named = typeof baseUrl === 'string' ? baseUrl : readSetting(env, 'BASE_URL');
  const address = named ?? readSetting(env, 'PUBLIC_URL') ?? localUrl(env);
  return address.replace(/\/+$/, '');
}

function localUrl(env: Env): string {
  const scheme = readSetting(env, 'TLS_CERT_FILE') === undefined ? 'http' : 'https';
  const host = readSetting(env, 'HOST');
  const isEverywhere = host === '0.0.0.0' || host === '::';
  const name = isEverywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}:${readSetting(env, 'PORT')}`;
}

function hasDesktop(env: Env): boolean {
  return Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY']);
}

/** Not awaited: the link is printed in any case. */
function open(link: string): void {
  const opener = spawn('xdg-open', [link], { detached: true, stdio: 'ignore' });
  opener.once('error', () => undefined); // there is none
  opener.unref();
}
