/**
 * Logs: one JSON line per event on stderr, or one line for people when stderr is a terminal.
 * Never a secret, a param, or a page's content: callers pass ids and counts.
 */
import pino from 'pino';

export type Log = pino.Logger;

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type Level = (typeof LEVELS)[number];
export const LOG_LEVELS: readonly Level[] = LEVELS;

/** A logger of one role; its lines go to stderr, so that stdout stays a command's answer. */
export function openLog(options: { role: string; level: Level; people?: boolean }): Log {
  const people = options.people ?? process.stderr.isTTY === true;
  const destination = people ? { write: writeForPeople } : pino.destination({ fd: 2, sync: false });
  return pino(
    {
      level: options.level,
      base: { role: options.role },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['apiKey', 'secret', 'token', 'signingKey', 'authorization'], remove: true },
    },
    destination,
  );
}

/** 12:53:37 info core: the message {"runner":"…"} */
function writeForPeople(line: string): void {
  const { time, level, role, msg, ...rest } = JSON.parse(line) as Record<string, string>;
  const facts = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : '';
  process.stderr.write(`${time?.slice(11, 19)} ${level} ${role}: ${msg ?? ''}${facts}\n`);
}
