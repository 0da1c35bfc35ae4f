/**
 * The command's entry file. The module of a command is loaded only when it runs, so that `tabern
 * invoke` loads no database driver and a runner loads no web server.
 */
import { CommanderError } from 'commander';
import { ConfigError } from '../proto/common/env.ts';
import { styled } from '../proto/terminal/text.ts';
import { runProgram } from './cli/program.ts';
import { EXIT, Exit } from './process/exit-codes.ts';

/** After this, a finished command exits even if a library left a handle open. Ours. */
const LEFTOVER_MS = 1_000;

// The reader of stdout may close it, as `head` does; a service continues, other commands end soon.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main();
// Unreferenced: fires only when an open handle keeps the process alive.
setTimeout(() => process.exit(), LEFTOVER_MS).unref();

/** The process must exit when the role or the command has ended. */
async function main(): Promise<number> {
  try {
    return await runProgram(process.argv.slice(2));
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.config;
    if (error instanceof Exit || error instanceof ConfigError) {
      process.stderr.write(`${styled('red', 'tabern:', process.stderr)} ${error.message}\n`);
      return error instanceof Exit ? error.code : EXIT.config;
    }
    throw error;
  }
}
