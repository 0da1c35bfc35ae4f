/**
 * `tabern drain`: asks the `tabern serve` or `tabern runner` of a data directory to drain, over its
 * socket. With --wait it returns when that process has ended, for a preStop hook.
 */
import type { Env } from '../../../proto/common/env.ts';
import { DRAIN_MAX_S } from '../../../proto/drain/end.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { placeOf } from './core-client.ts';
import { post } from './process-socket.ts';
import { print } from './terminal.ts';

export async function drain(_: string, given: Given, env: Env): Promise<number> {
  const { dataDir } = placeOf(given, env);
  const query = new URLSearchParams();
  const { seconds, wait } = given;
  if (seconds !== undefined) query.set('seconds', secondsOf(String(seconds)));
  if (wait === true) query.set('wait', 'true');
  const response = await post(dataDir, `/drain?${query}`);
  const isAccepted = response.statusCode === 202;
  let last = '';
  try {
    for await (const text of response.setEncoding('utf8')) {
      last = String(text).trim();
      if (isAccepted) print(last);
    }
  } catch (cause) {
    throw new Exit(EXIT.failed, 'the process was killed while it drained', cause);
  }
  if (!isAccepted) throw new Exit(EXIT.config, last);
  return 0;
}

function secondsOf(text: string): string {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= DRAIN_MAX_S) return text;
  throw new Exit(EXIT.config, `--seconds must be a number from 1 to ${DRAIN_MAX_S}`);
}
