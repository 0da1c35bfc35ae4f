/**
 * `tabern upgrade`: asks the running `tabern serve` of a data directory to let this program, the
 * one that runs the command, take over. Returns when the new one serves.
 */
import { text } from 'node:stream/consumers';
import type { Env } from '../../../proto/common/env.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Program } from '../../process/upgrade-ipc.ts';
import type { Given } from '../command.ts';
import { placeOf } from './core-client.ts';
import { post } from './process-socket.ts';
import { print } from './terminal.ts';

export async function upgrade(_: string, given: Given, env: Env): Promise<number> {
  const { dataDir } = placeOf(given, env);
  const [, script = ''] = process.argv;
  const program: Program = { command: [process.execPath, script], npm: env['npm_execpath'] };
  const response = await post(dataDir, '/upgrade', JSON.stringify(program));
  const says = (await text(response)).trim();
  if (response.statusCode === 404) {
    throw new Exit(EXIT.failed, `no \`tabern serve\` that can be upgraded works on ${dataDir}`);
  }
  if (response.statusCode !== 200) throw new Exit(EXIT.failed, `not upgraded, ${says}`);
  print(says);
  return 0;
}
