/** `tabern logs <id>`: the log of an invocation, or of a build with --build. */
import { logLines, logText, openApi } from './api.ts';
import { type Cli, type Options, runCli } from './config.ts';

export function run(argument: string, options: Options): Promise<number> {
  return runCli(options, (cli) => logs(argument, options, cli));
}

export async function logs(argument: string, options: Options, cli: Cli): Promise<number> {
  const noun = options['build'] === true ? 'builds' : 'invocations';
  const path = `/v1/functions/${noun}/${encodeURIComponent(argument)}/logs`;
  const answer = await openApi(cli).get(path);
  if (options['json'] === true) cli.print(JSON.stringify(answer));
  else for (const line of logLines(answer)) cli.print(logText(line));
  return 0;
}
