/**
 * The command as a process. The table is in commands/; each command's module is loaded only when
 * it runs, so that `tabern invoke` does not open a database driver and a runner does not load a web
 * server.
 */
import { CommanderError } from 'commander';
import { ConfigError } from '../proto/common/env.ts';
import { runProgram } from './cli/program.ts';
import { EXIT, Exit } from './process/exit-codes.ts';

/** A command that is over has ended after this, whatever a library left open. Ours. */
const LEFTOVER_MS = 1_000;

// Who reads stdout may leave, as `head` does; a service goes on, and a tool is over soon.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main();
// Unreferenced: fires only when a forgotten handle keeps the process.
setTimeout(() => process.exit(), LEFTOVER_MS).unref();

/**
 * Roles end their own loops; a tool is over when it returns. Either way nothing may keep the
 * process.
 */
async function main(): Promise<number> {
  try {
    return await runProgram(process.argv.slice(2));
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.config;
    if (error instanceof Exit || error instanceof ConfigError) {
      process.stderr.write(`tabern: ${error.message}\n`);
      return error instanceof Exit ? error.code : EXIT.config;
    }
    throw error;
  }
}
