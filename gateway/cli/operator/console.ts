/**
 * `tabern console`: prints a link that logs a browser in to the console, and opens it. The link has
 * a one-time code in its fragment, which browsers do not send: no log of a proxy has it.
 */
import { spawn } from 'node:child_process';
import type { Env } from '../../../proto/common/env.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import type { Given } from '../command.ts';
import { withCore } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

export async function openConsole(_: string, given: Given, env: Env): Promise<number> {
  const named = typeof given['project'] === 'string' ? given['project'] : 'default';
  const { code, expiresAt, project } = await withCore(given, env, ({ operators, call }) =>
    operators.createConsoleCode({ project: named }, call),
  );
  const link = `${addressOf(given, env)}/console/login#code=${code}`;
  return answer(given, { link, projectId: project?.id, expiresAt }, () => {
    note(`console of project ${project?.name}; the link is valid for 60 s and one login:`);
    print(link);
    if (given['open'] !== false && hasDesktop(env)) open(link);
  });
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
