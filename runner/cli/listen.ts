/**
 * `tabern listen --forward-to <url>`: a project's events on a developer's own machine, which has no
 * public address. Polls for what happens from now on and POSTs each envelope, byte for byte and
 * signed as a webhook's, to the URL. A forward that fails is not made again: a line says so.
 * listening <-> away (the service does not answer) -> ended by Ctrl-C.
 */
import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { ConfigError } from '../../proto/common/env.ts';
import { retry } from '../../proto/common/retry.ts';
import { isPassing, type Json, openApi, plain } from './api.ts';
import { type Cli, type Options, runCli } from './config.ts';

/** In seconds. Source: core/webhooks/listeners.ts. */
const WAIT_S = 25;
/** In milliseconds: as a webhook's receiver has. Source: proto/spec/webhooks.md 5. */
const FORWARD_TIMEOUT_MS = 15_000;
/** In milliseconds: between two looks for a service that is away. Ours. */
const AWAY_MAX_MS = 5_000;
const SECRET_BYTES = 32;

type Event = { id: string; type: string; body: string };
/** What one run does: `types` is empty for all. */
type Job = { forwardTo: string; types: ReadonlySet<string>; secret: string };

/** Exit code 0 when it was ended. */
export async function run(options: Options): Promise<number> {
  const asked = new AbortController();
  const end = () => asked.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  return runCli(options, (cli) => listen(options, cli, asked.signal));
}

/** Until `asked` aborts. Throws ConfigError for wrong options, ApiError for a wrong key. */
export async function listen(options: Options, cli: Cli, asked: AbortSignal): Promise<number> {
  const job = jobOf(options);
  const api = openApi(cli);
  const webhook = new Webhook(job.secret);
  let cursor: string | undefined;
  try {
    while (!asked.aborted) {
      const page = await poll(() => api.get(pathOf(cursor), asked), cli, asked);
      if (cursor === undefined) announce(job, cli);
      for (const event of eventsOf(page, job)) {
        if (asked.aborted) break;
        print(event, await forward(event, { ...job, webhook, asked }), { cli, options });
      }
      cursor = String(page['nextCursor']);
    }
  } catch (error) {
    if (!asked.aborted) throw error;
  }
  return 0;
}

/** The answer, however long the service is away. */
async function poll(get: () => Promise<Json>, cli: Cli, signal: AbortSignal): Promise<Json> {
  let isAway = false;
  const onRetry = (error: unknown): void => {
    if (!isAway) cli.say(`${(error as Error).message} Going on when it is back.`);
    isAway = true;
  };
  const { pollMs: firstMs } = cli;
  const options = { firstMs, maxMs: AWAY_MAX_MS, isRetryable: isPassing, onRetry, signal };
  const page = await retry(get, options);
  if (isAway) cli.say('the service is back');
  return page;
}

function announce({ forwardTo, secret }: Job, cli: Cli): void {
  cli.say(`forwarding to ${forwardTo}`);
  cli.say(`signing secret ${secret}`);
  cli.say('A forward that fails is not repeated. Ctrl-C ends.');
}

function pathOf(cursor: string | undefined): string {
  if (cursor === undefined) return '/v1/events'; // answers at once: from now on
  return `/v1/events?wait=${WAIT_S}&cursor=${encodeURIComponent(cursor)}`;
}

function eventsOf(page: Json, { types }: Job): Event[] {
  const events = Array.isArray(page['data']) ? (page['data'] as Event[]) : [];
  return events.filter(({ type }) => types.size === 0 || types.has(type));
}

type Forwarding = Job & { webhook: Webhook; asked: AbortSignal };

/** The status answered, or why there is none. */
async function forward({ id, body }: Event, job: Forwarding): Promise<number | string> {
  const at = new Date();
  const late = AbortSignal.timeout(FORWARD_TIMEOUT_MS);
  try {
    const answer = await fetch(job.forwardTo, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'tabern-listen/1',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': job.webhook.sign(id, at, body),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([late, job.asked]),
    });
    await answer.body?.cancel();
    return answer.status;
  } catch (error) {
    // fetch says only "fetch failed"; why is in its cause.
    const { cause } = error as Error & { cause?: { code?: string } };
    if (late.aborted) return `no answer within ${FORWARD_TIMEOUT_MS / 1_000} s`;
    return cause?.code ?? 'no connection';
  }
}

/** 12:53:37 200 functions.invocations.completed <event id> */
function print(
  { id, type }: Event,
  answered: number | string,
  { cli, options }: { cli: Cli; options: Options },
): void {
  const time = new Date().toISOString();
  if (options['json'] === true) {
    cli.print(JSON.stringify({ at: time, id, type, answered }));
    return;
  }
  const isOk = typeof answered === 'number' && answered >= 200 && answered < 300;
  const note = isOk ? '' : ' (not repeated)';
  cli.print(`${time.slice(11, 19)} ${answered} ${plain(type)} ${plain(id)}${note}`);
}

function jobOf(options: Options): Job {
  const given = (name: string) => {
    const value = options[name];
    return typeof value === 'string' ? value.trim() : '';
  };
  const types = given('types')
    .split(',')
    .map((type) => type.trim());
  return {
    forwardTo: checkedUrl(given('forwardTo')),
    types: new Set(types.filter((type) => type !== '')),
    secret: checkedSecret(given('secret')),
  };
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (!url || !isHttp || url.username !== '' || url.password !== '') {
    throw new ConfigError('--forward-to must be a URL such as http://localhost:3000/hook');
  }
  return url.href;
}

function checkedSecret(text: string): string {
  if (text === '') return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(text)) {
    throw new ConfigError('--secret must be whsec_ and the base64 of 24 bytes or more');
  }
  return text;
}
