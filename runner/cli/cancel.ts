/** `tabern cancel <invocation>`: cancels an invocation that is pending or running. */
import { openApi, plain } from './api.ts';
import { type Cli, type Options, runCli } from './config.ts';

/** Exit code 0 when it has ended or is about to; a waiting caller gets the outcome. */
export function run(argument: string, options: Options): Promise<number> {
  return runCli(options, (cli) => cancel(argument, options, cli));
}

export async function cancel(argument: string, options: Options, cli: Cli): Promise<number> {
  const path = `/v1/functions/invocations/${encodeURIComponent(argument)}/cancel`;
  const invocation = await openApi(cli).post(path, {});
  if (options['json'] === true) cli.print(JSON.stringify(invocation));
  else cli.print(plain(invocation['status']));
  return 0;
}
