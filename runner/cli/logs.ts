/**
 * `tabern logs <id>`: the log of an invocation, or of a build with --build. With --follow new lines
 * are printed until the invocation or build ends.
 */
import { type Api, type LogLine, logLines, logText, openApi } from './api.ts';
import { type Cli, type Options, runCli } from './config.ts';

export function run(argument: string, options: Options): Promise<number> {
  return runCli(options, (cli) => logs(argument, options, cli));
}

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

/** A JSON or text line each. The last read follows the end, so no line is missed. */
async function follow(api: Api, path: string, print: (line: LogLine) => void): Promise<void> {
  let printed = 0;
  await api.poll(path, async ({ status }) => {
    const lines = logLines(await api.get(`${path}/logs`));
    for (const line of lines.slice(printed)) print(line);
    printed = Math.max(printed, lines.length);
    return status !== 'PENDING' && status !== 'RUNNING';
  });
}
