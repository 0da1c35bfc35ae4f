/**
 * Commands of ours beside Chrome's: a client asks a person for help in the session, and hears when
 * they have finished. Their names with `Cloudflare.` are those of Cloudflare Browser Run, whose
 * clients work unchanged. Times are in milliseconds, as in the whole protocol.
 */
import { INSTRUCTIONS_MAX_CHARS } from '../../../proto/common/limits.ts';
import { asFault } from '../../../proto/rpc/errors.ts';
import type { Command } from '../../browser/cdp/command-policy.ts';
import type { SessionHandoffs } from '../handoffs.ts';

const COMMANDS = /^(Tabern|Cloudflare)\.(handoff|getLiveView)$/;
/** Ours: each is a call to core. */
const OPEN_MAX = 4;

/** The largest of the contract's numbers, which core refuses. */
const SECONDS_MAX = 2 ** 32 - 1;

/** What a client of the relay is to the service. */
export type Peer = {
  /** Origin of the service, as the client knows it; empty when unknown. */
  origin: string;
  /** Public part of its API key; empty when unknown. */
  keyId: string;
};

export type HandoffCommands = (
  command: Command,
  /** Sends an event to the session of the command. */
  notify: (method: string, params: object) => void,
) => Promise<Answer> | undefined;

/** `logged`: without the link, which is a credential, while the session's log may be shared. */
type Answer = { result: object; logged: object };

export function isHandoffCommand(method: string): boolean {
  return COMMANDS.test(method);
}

/** Returns the result of a command, or undefined for a command of Chrome's. Rejects with why. */
export function handoffCommands(handoffs: SessionHandoffs, peer: Peer): HandoffCommands {
  let open = 0;
  const { origin, keyId } = peer;
  async function answer(
    kind: string,
    { params = {} }: Command,
    finished: (status: string) => void,
  ): Promise<Answer> {
    if (kind === 'getLiveView') {
      const url = origin + (await handoffs.link(keyId));
      return { result: { url, devtoolsFrontendUrl: url }, logged: {} };
    }
    const { instructions, timeout } = params;
    if (typeof instructions !== 'string' || instructions.length > INSTRUCTIONS_MAX_CHARS) {
      throw new Error(
        `\`instructions\` must be a string of 1 to ${INSTRUCTIONS_MAX_CHARS} characters.`,
      );
    }
    if (timeout !== undefined && !(Number(timeout) > 0)) {
      throw new Error('`timeout` must be a number of milliseconds.');
    }
    const seconds = timeout === undefined ? undefined : toSeconds(Number(timeout));
    const wanted = { instructions, timeout: seconds, keyId };
    const { id, url } = await handoffs.request(wanted, finished);
    return { result: { handoffId: id, url: origin + url }, logged: { handoffId: id } };
  }

  return (command, notify) => {
    const [, domain, kind] = COMMANDS.exec(command.method) ?? [];
    if (domain === undefined || kind === undefined) return undefined;
    if (open >= OPEN_MAX) return Promise.reject(new Error('Too many commands at once.'));
    open += 1;
    const finished = (status: string): void => {
      const isDone = status === 'COMPLETED';
      const reason = isDone ? {} : { reason: status.toLowerCase() };
      notify(`${domain}.handoffComplete`, { success: isDone, status, ...reason });
    };
    return answer(kind, command, finished)
      .catch((error: unknown) => {
        throw error instanceof Error && error.constructor === Error ? error : asFault(error);
      })
      .finally(() => {
        open -= 1;
      });
  };
}

function toSeconds(ms: number): number {
  return Math.min(Math.ceil(ms / 1_000), SECONDS_MAX);
}
