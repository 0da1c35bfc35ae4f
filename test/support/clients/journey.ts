/**
 * The main job as a user sees it, after publishing: invoke, read the invocation, receive a signed
 * webhook.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { is } from 'uvu/assert';
import { moduleCacheEnv } from '../../../proto/common/compile-cache.ts';
import { must } from '../../../proto/common/must.ts';
import type { Received, Receiver } from '../servers/receiver.ts';
import type { Stack } from '../service/stack.ts';
import { type TempDirectory, tempDirectory } from '../temp.ts';
import { ended, type Invocation, invoke } from './functions.ts';

const REGISTRY = /^(?:https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|TMPDIR|npm_config_(?!prefix).*)$/i;

const PROJECTS = new URL('../projects/', import.meta.url);
const COMPLETED = 'functions.invocations.completed';
const FAILED = 'functions.invocations.failed';

export type Envelope = {
  id: string;
  type: string;
  timestamp: string;
  resourceId: string;
  projectId: string;
  data: Record<string, unknown>;
};

type Logs = { logs: { message: string; timestamp: number; level: string }[]; total: number };

/** A copy of one of test/support/projects, to publish from. */
export function userProject(name: 'title' | 'title-bb' | 'stagehand' | 'mcp'): TempDirectory {
  const dir = tempDirectory();
  cpSync(fileURLToPath(new URL(`${name}/`, PROJECTS)), dir.path, { recursive: true });
  return dir;
}

/**
 * Runs a command as a user does, but with the tests' cache of compiled sources, as Node's programs
 * start in half of the time with it. Returns its exit code and its whole output.
 */
export async function shell(
  command: readonly string[],
  options: { cwd: string; env: Record<string, string> },
): Promise<{ code: number; stdout: string; stderr: string }> {
  const [program = '', ...rest] = command;
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, ...moduleCacheEnv(), ...options.env };
  const child = spawn(program, rest, { cwd: options.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number];
  return { code, stdout, stderr };
}

/** The variables for the npm registry and the Debian mirror. */
export function registryEnv(): Record<string, string> {
  const passed = Object.entries(process.env).filter(([name]) => REGISTRY.test(name));
  return Object.fromEntries(passed) as Record<string, string>;
}

/** The ids of the project's functions, by name. */
export async function functionIds(stack: Stack): Promise<Record<string, string>> {
  type List = { data: { id: string; name: string }[]; total: number };
  const { data } = await stack.call<List>('/v1/functions');
  return Object.fromEntries(data.map((one) => [one.name, one.id]));
}

/** Registers the receiver; only this response contains the secret. */
export function register(stack: Stack, receiver: Receiver) {
  const json = { endpoint: `${receiver.url}/hook`, eventTypes: [COMPLETED, FAILED] };
  return stack.call<{ id: string; secret: string }>('/v1/webhooks', { json });
}

/** Invokes `title` and `fail`, and checks every place that reports their outcome. */
export async function mainJob(
  stack: Stack,
  { receiver, siteUrl }: { receiver: Receiver; siteUrl: string },
): Promise<void> {
  const { secret } = await register(stack, receiver);
  const ids = await functionIds(stack);

  const good = await invoke(stack, must(ids['title'], 'title'), { url: siteUrl });
  is(good.status, 'PENDING');
  const completed = await ended(stack, good.id);
  is(JSON.stringify(completed.cause), undefined, stack.logs());
  is(completed.status, 'COMPLETED');
  is(JSON.stringify(completed.results), '{"title":"The inn","links":3}');
  await expectSession(stack, completed, 'COMPLETED');
  const logs = await logsOf(stack, good.id);
  is(logs.total, logs.logs.length);
  is(logs.logs[0]?.message, `opening ${siteUrl}`);

  const told = verified(await eventOf(receiver, good.id), secret);
  is(told.type, COMPLETED);
  is(told.projectId, stack.projectId);
  is(told.data['status'], 'COMPLETED');
  is(JSON.stringify(told.data['results']), '{"title":"The inn","links":3}');
  is('params' in told.data, false, 'params may be secret: they are not told');

  const bad = await invoke(stack, must(ids['fail'], 'fail'));
  const failed = await ended(stack, bad.id);
  is(failed.status, 'FAILED');
  is(failed.cause?.code, 'WORKLOAD_ERROR');
  is(failed.cause?.message, 'it was asked to fail');
  is('results' in failed, false);
  is((await logsOf(stack, bad.id)).logs[0]?.level, 'error');
  is(verified(await eventOf(receiver, bad.id), secret).type, FAILED);
  is(receiver.requests.filter((one) => resourceOf(one) === bad.id).length, 1);
}

async function expectSession(stack: Stack, { sessionId }: Invocation, status: string) {
  const session = await stack.call(`/v1/sessions/${sessionId}`);
  is(session['status'], status);
  is('connectUrl' in session, false, 'an ended session cannot be connected to');
  is(typeof session['endedAt'], 'string');
}

function logsOf(stack: Stack, id: string): Promise<Logs> {
  return stack.call(`/v1/functions/invocations/${id}/logs`);
}

function eventOf(receiver: Receiver, resourceId: string): Promise<Received> {
  return receiver.received((one) => resourceOf(one) === resourceId);
}

function resourceOf(request: Received): string {
  return (JSON.parse(request.body.toString()) as Envelope).resourceId;
}

/** The envelope, after the published library has verified the raw bytes. */
function verified({ headers, body }: Received, secret: string): Envelope {
  const signed = headers as Record<string, string>;
  const envelope = new Webhook(secret).verify(body, signed) as Envelope;
  is(envelope.id, signed['webhook-id']);
  let isForged = false;
  try {
    new Webhook(secret).verify(Buffer.concat([body, Buffer.from(' ')]), signed);
  } catch {
    isForged = true; // the library's result for one more byte
  }
  is(isForged, true);
  return envelope;
}
