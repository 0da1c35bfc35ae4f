/**
 * The command table. Each command's module is loaded only when it runs, so that `tabern invoke`
 * does not open a database driver and a runner does not load a web server. A command gives its exit
 * code.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { ConfigError } from '../proto/env.ts';
import { environment } from './config.ts';
import { EXIT, Exit } from './exits.ts';

type Options = Record<string, string | boolean | undefined>;
type Run = (argument: string, options: Options) => Promise<number>;

/** A command that is over has ended after this, whatever a library left open. Ours. */
const LEFTOVER_MS = 1_000;
const PACKAGE = new URL('../package.json', import.meta.url);

const program = new Command('tabern')
  .description('Remote browser sessions, published functions and signed webhooks.')
  .version(version(), '-v, --version')
  .showHelpAfterError()
  .exitOverride();
addRoles();
addTools();
process.exitCode = await main();
// Unreferenced: fires only when a forgotten handle keeps the process.
setTimeout(() => process.exit(), LEFTOVER_MS).unref();

/**
 * Roles end their own loops; a tool is over when it returns. Either way nothing may keep the
 * process.
 */
async function main(): Promise<number> {
  let code = 0;
  program.hook('postAction', (_, action) => {
    code = Number(action.getOptionValue('exitCode') ?? 0);
  });
  try {
    await program.parseAsync();
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.config;
    if (error instanceof Exit || error instanceof ConfigError) {
      process.stderr.write(`tabern: ${error.message}\n`);
      return error instanceof Exit ? error.code : EXIT.config;
    }
    throw error;
  }
}

function addRoles(): void {
  const core = () => new Option('--core <address>', 'where core is, such as unix:/srv/core.sock');
  role('serve', 'run everything here').action(
    coded(async () => (await import('./serve.ts')).serve(environment())),
  );
  role('core', 'run core alone').action(
    coded(async () => (await import('./serve.ts')).serveCore(environment())),
  );
  role('gateway', 'run the gateway alone')
    .addOption(core())
    .action(
      coded(async ({ core }) => {
        const address = typeof core === 'string' ? core : undefined;
        return (await import('./alone.ts')).serveGateway(environment(), address);
      }),
    );
  role('runner', 'run a runner alone')
    .addOption(core())
    .action(
      coded(async ({ core }) => {
        if (typeof core === 'string') environment()['TABERN_CORE'] = core;
        await (await import('../runner/main.ts')).runnerMain();
        return 0;
      }),
    );
  role('version', 'print the version').action(
    coded(async () => {
      process.stdout.write(`${version()}\n`);
      return 0;
    }),
  );
}

function addTools(): void {
  tool('publish <entry>', 'publish the functions of a source file', async (entry, options) =>
    (await import('../runner/cli/publish.ts')).run(entry, options),
  );
  tool('invoke <function>', 'run a function, by id or name, and wait', async (name, options) =>
    (await import('../runner/cli/invoke.ts')).run(name, options),
  ).option('--params <json>', 'what the handler gets as its params', '{}');
  tool('logs <invocation-id>', 'print what an invocation printed', async (id, options) =>
    (await import('../runner/cli/logs.ts')).run(id, options),
  ).option('--build', 'the id is a build: print its log');
  tool('listen', "forward the project's events to a URL of this machine", async (_, options) =>
    (await import('../runner/cli/listen.ts')).run(options),
  )
    .option('--forward-to <url>', 'where to POST them, such as http://localhost:3000/hook')
    .option('--types <types>', 'only these event types, separated by commas')
    .option('--secret <secret>', 'signs them, as whsec_...; one is made when absent');
  addContextTools();
}

function addContextTools(): void {
  const context = program.command('context').description('move what a context holds');
  const load = () => import('../runner/cli/context.ts');
  callable(context.command('upload <context-id> <directory>'))
    .description('encrypt a user-data directory and make it what the context holds')
    .action(async (id: string, directory: string, options: Options, command: Command) => {
      command.setOptionValue('exitCode', await (await load()).upload([id, directory], options));
    });
  callable(context.command('download <context-id> <directory>'))
    .description('keep what the context holds, encrypted as it is, as a file in the directory')
    .action(async (id: string, directory: string, options: Options, command: Command) => {
      command.setOptionValue('exitCode', await (await load()).download([id, directory], options));
    });
}

function role(name: string, description: string): Command {
  return program.command(name).description(description);
}

function tool(usage: string, description: string, run: Run): Command {
  return callable(program.command(usage))
    .description(description)
    .action(async (...given: unknown[]) => {
      const command = given.at(-1) as Command; // commander hands itself over last
      command.setOptionValue('exitCode', await run(command.args[0] ?? '', command.opts()));
    });
}

/** With the options of all that call the service. */
function callable(command: Command): Command {
  return command
    .option('--base-url <url>', 'where tabern is; TABERN_BASE_URL, or http://127.0.0.1:4747')
    .option('--api-key <key>', 'your API key; TABERN_API_KEY when absent')
    .option('--json', 'print JSON alone');
}

function coded(run: (options: Options) => Promise<number>) {
  return async (options: Options, command: Command) => {
    command.setOptionValue('exitCode', await run(options));
  };
}

function version(): string {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  return version;
}
