/**
 * `tabern logs <id>`: the log of an invocation, or of a build with --build. With --follow new lines
 * are printed until the invocation or build ends.
 */
import { follow, type LogLine, logLines, logText, openApi } from './api.ts';
import { type Cli, command, type Options } from './config.ts';

export const run = command(logs);

export async function logs(argument: string, options: Options, cli: Cli): Promise<number> {
  const noun = options['build'] === true ? 'builds' : 'invocations';
  const path = `/v1/functions/${noun}/${encodeURIComponent(argument)}`;
  const api = openApi(cli);
  const isJson = options['json'] === true;
  if (options['follow'] === true) {
    const print = (line: LogLine) => cli.print(isJson ? JSON.stringify(line) : logText(line));
    await follow(api, path, print);
    return 0;
  }
  const answer = await api.get(`${path}/logs`);
  if (isJson) cli.print(JSON.stringify(answer));
  else for (const line of logLines(answer)) cli.print(logText(line));
  return 0;
}
