/**
 * `tabern invoke <function>`: runs a function once, by its id or name, and waits for its result.
 */
import { ConfigError } from '../../proto/common/env.ts';
import { type Api, type Json, logLines, logText, openApi, plain } from './api.ts';
import { type Cli, CliError, type Options, runCli } from './config.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Source: proto/spec/rest.md 2. */
const PAGE = 100;
/**
 * In seconds: the response arrives at the end, or after this time. Ours: below the usual limits of
 * proxies.
 */
const WAIT_S = 20;

/** Exit code 0 when the invocation COMPLETED. */
export function run(argument: string, options: Options): Promise<number> {
  return runCli(options, (cli) => invoke(argument, options, cli));
}

export async function invoke(argument: string, options: Options, cli: Cli): Promise<number> {
  const params = readParams(options['params']);
  const api = openApi(cli);
  const functionId = UUID.test(argument) ? argument : await idOf(argument, api);
  const { id } = await api.post(`/v1/functions/${functionId}/invoke`, { params });
  cli.say(`invocation ${plain(id)}`);
  const path = `/v1/functions/invocations/${encodeURIComponent(String(id))}`;
  const invocation = await api.poll(
    `${path}?wait=${WAIT_S}`,
    ({ status }) => status !== 'PENDING' && status !== 'RUNNING',
  );
  for (const line of logLines(await api.get(`${path}/logs`))) cli.say(logText(line));
  const isCompleted = invocation['status'] === 'COMPLETED';
  const results = invocation['results'];
  if (options['json'] === true) cli.print(JSON.stringify(invocation));
  else if (results !== undefined) cli.print(JSON.stringify(results, null, 2));
  if (isCompleted) return 0;
  const { code, message } = (invocation['cause'] ?? {}) as Json;
  cli.say(`invocation failed: ${plain(code ?? 'unknown')}${message ? `: ${plain(message)}` : ''}`);
  return 1;
}

function readParams(given: string | boolean | undefined): Json {
  if (typeof given !== 'string') return {};
  try {
    const value: unknown = JSON.parse(given);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
  } catch (error) {
    throw new ConfigError('params are not valid JSON', { cause: error });
  }
  throw new ConfigError(`params must be a JSON object, such as '{"url":"https://example.com"}'`);
}

async function idOf(name: string, api: Api): Promise<string> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await api.get(`/v1/functions?offset=${offset}&limit=${PAGE}`);
    const found = Array.isArray(page['data']) ? (page['data'] as Json[]) : [];
    const id = found.find((one) => one['name'] === name)?.['id'];
    if (typeof id === 'string') return encodeURIComponent(id);
    if (found.length < PAGE) throw new CliError(`there is no function ${JSON.stringify(name)}`);
  }
}
