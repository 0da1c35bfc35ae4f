/**
 * `tabern invoke <function>`: runs a function once, by its id or name, and waits for its result.
 */
import { ConfigError } from '../../proto/common/env.ts';
import { openSpinner } from '../../proto/terminal/progress.ts';
import { plain } from '../../proto/terminal/text.ts';
import { failureText, isObject, type Json, logLines, logText, openApi, parseJson } from './api.ts';
import { type Cli, command, type Options } from './config.ts';
import { functionIdOf } from './offset-pages.ts';

/**
 * In seconds: the response arrives at the end, or after this time. Ours: below the usual limits of
 * proxies.
 */
const WAIT_S = 20;

/** Exit code 0 when the invocation COMPLETED. */
export const run = command(invoke);

export async function invoke(argument: string, options: Options, cli: Cli): Promise<number> {
  const params = readParams(options['params']);
  const api = openApi(cli);
  const functionId = await functionIdOf(api, argument);
  const { id } = await api.post(`/v1/functions/${functionId}/invoke`, { params });
  cli.say(`invocation ${plain(id)}`);
  const path = `/v1/functions/invocations/${encodeURIComponent(String(id))}`;
  const invocation = await spinning('running', () => api.poll(`${path}?wait=${WAIT_S}`));
  for (const line of logLines(await api.get(`${path}/logs`))) {
    cli.say(logText(line, process.stderr));
  }
  const { status, results } = invocation;
  if (options['json'] === true) cli.print(JSON.stringify(invocation));
  else if (results !== undefined) cli.print(JSON.stringify(results, null, 2));
  if (status === 'COMPLETED') return 0;
  cli.say(failureText('invocation', invocation));
  return 1;
}

async function spinning<T>(text: string, work: () => Promise<T>): Promise<T> {
  using _spinner = openSpinner(text);
  return await work();
}

function readParams(given: string | boolean | undefined): Json {
  if (typeof given !== 'string') return {};
  const params = parseJson(given);
  if (params === undefined) throw new ConfigError('params are not valid JSON');
  if (isObject(params)) return params;
  throw new ConfigError(`params must be a JSON object, such as '{"url":"https://example.com"}'`);
}
