/**
 * `tabern listen --forward-to <url>`: a project's events on a developer's machine, which has no
 * public address. Polls for new events and POSTs each envelope to the URL, byte for byte and signed
 * as for a webhook. A failed forward is not repeated; the printed line shows the failure.
 * listening <-> away (the service does not answer) -> ended by Ctrl-C.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { createFile } from '../../proto/common/durable.ts';
import { ConfigError } from '../../proto/common/env.ts';
import { retry } from '../../proto/common/retry.ts';
import { plain } from '../../proto/terminal/text.ts';
import { type Api, connectionError, isOutage, type Json, openApi } from './api.ts';
import { type Cli, CliError, httpUrl, type Options, option, runCli, signalOf } from './config.ts';

/** In seconds. Source: core/webhooks/listeners.ts. */
const WAIT_S = 25;
/** In milliseconds, as for a webhook. Source: proto/spec/webhooks.md 5. */
const FORWARD_TIMEOUT_MS = 15_000;
/** In milliseconds: the longest pause between two polls during an outage. Ours. */
const AWAY_MAX_MS = 5_000;
const SECRET_BYTES = 32;
const SECRET = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/;

type Event = { id: string; type: string; body: string };
type Target = { url: string; webhook: Webhook };

/** Exit code 0 when a signal ended the command. */
export async function run(options: Options): Promise<number> {
  const signal = signalOf('SIGINT', 'SIGTERM');
  return runCli(options, (cli) => listen(options, cli, signal));
}

/** Until the signal aborts. Throws ConfigError for wrong options, ApiError for a wrong key. */
export async function listen(options: Options, cli: Cli, signal: AbortSignal): Promise<number> {
  const url = forwardUrl(option(options, 'forwardTo'));
  const given = checkedSecret(option(options, 'secret'));
  const names = (option(options, 'types') ?? '').split(',').map((type) => type.trim());
  const types = new Set(names.filter((type) => type !== ''));
  const api = openApi(cli);
  let cursor: string | undefined;
  try {
    const secret = given ?? (await keptSecret(url, api, { cli, signal }));
    const webhook = new Webhook(secret);
    while (!signal.aborted) {
      const page = await poll(() => api.get(pathOf(cursor), signal), cli, signal);
      if (cursor === undefined) announce(url, secret, cli);
      for (const event of eventsOf(page, types)) {
        if (signal.aborted) break;
        const outcome = await forward(event, { url, webhook }, signal);
        cli.print(lineOf(event, outcome, options['json'] === true));
      }
      cursor = String(page['nextCursor']);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return 0;
}

/** The response, after an outage of any length. */
async function poll(get: () => Promise<Json>, cli: Cli, signal: AbortSignal): Promise<Json> {
  let isAway = false;
  const onRetry = (error: unknown): void => {
    if (!isAway) cli.say(`${(error as Error).message} Going on when it is back.`);
    isAway = true;
  };
  const pauses = { firstMs: cli.pollMs, maxMs: AWAY_MAX_MS };
  const page = await retry(get, { ...pauses, isRetryable: isOutage, onRetry, signal });
  if (isAway) cli.say('the service is back');
  return page;
}

function announce(url: string, secret: string, cli: Cli): void {
  cli.say(`forwarding to ${url}`);
  cli.say(`signing secret ${secret}`);
  cli.say('A forward that fails is not repeated. Ctrl-C ends.');
}

function pathOf(cursor: string | undefined): string {
  if (cursor === undefined) return '/v1/events'; // returns at once, with the cursor of now
  return `/v1/events?wait=${WAIT_S}&cursor=${encodeURIComponent(cursor)}`;
}

/** The events of these types; of all types when the set is empty. */
function eventsOf({ data }: Json, types: ReadonlySet<string>): Event[] {
  const events = Array.isArray(data) ? (data as Event[]) : [];
  return events.filter(({ type }) => types.size === 0 || types.has(type));
}

/** The status of the response, or why there is none. */
async function forward(
  { id, body }: Event,
  { url, webhook }: Target,
  signal: AbortSignal,
): Promise<number | string> {
  const at = new Date();
  const late = AbortSignal.timeout(FORWARD_TIMEOUT_MS);
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'tabern-listen/1',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': webhook.sign(id, at, body),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([late, signal]),
    });
    await answer.body?.cancel();
    return answer.status;
  } catch (error) {
    if (late.aborted) return `no answer within ${FORWARD_TIMEOUT_MS / 1_000} s`;
    return connectionError(error);
  }
}

/** 12:53:37 200 functions.invocations.completed <event id> */
function lineOf({ id, type }: Event, outcome: number | string, isJson: boolean): string {
  const time = new Date().toISOString();
  if (isJson) return JSON.stringify({ at: time, id, type, answered: outcome });
  const isOk = typeof outcome === 'number' && outcome >= 200 && outcome < 300;
  const note = isOk ? '' : ' (not repeated)';
  return `${time.slice(11, 19)} ${outcome} ${plain(type)} ${plain(id)}${note}`;
}

function forwardUrl(text = ''): string {
  const url = httpUrl(text);
  if (url) return url.href;
  throw new ConfigError('--forward-to must be a URL such as http://localhost:3000/hook');
}

/** The secret of this project and URL; a new one is kept for the next call. */
async function keptSecret(
  url: string,
  api: Api,
  { cli, signal }: { cli: Cli; signal: AbortSignal },
): Promise<string> {
  const projects = await poll(() => api.get('/v1/projects', signal), cli, signal);
  const [project] = Array.isArray(projects) ? (projects as Json[]) : [];
  const id = project?.['id'];
  if (typeof id !== 'string') {
    throw new CliError('the service answered without a project; check TABERN_BASE_URL');
  }
  const name = createHash('sha256').update(`${cli.baseUrl} ${id} ${url}`);
  const made = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  try {
    return secretIn(join(cli.userDir(), 'listen', name.digest('hex')), made);
  } catch (error) {
    if (error instanceof CliError) throw error;
    cli.say(`warning: the signing secret is not kept: ${(error as Error).message}`);
    return made;
  }
}

/** The secret in that file, whichever process wrote it first. */
function secretIn(path: string, made: string): string {
  try {
    createFile(path, `${made}\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readSecret(path);
}

function readSecret(path: string): string {
  let cause: unknown;
  try {
    const secret = readFileSync(path, 'utf8').trim();
    if (SECRET.test(secret)) return secret;
  } catch (error) {
    cause = error;
  }
  throw new CliError(`cannot read a signing secret in ${path}; delete the file`, { cause });
}

function checkedSecret(text?: string): string | undefined {
  if (text === undefined || SECRET.test(text)) return text;
  throw new ConfigError('--secret must be whsec_ and the base64 of 24 bytes or more');
}
