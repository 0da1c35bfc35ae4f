/**
 * Logs: one JSON line per event on stderr, or a readable line when stderr is a terminal. Logs never
 * contain secrets, params or page content: callers log ids and counts.
 */
import pino from 'pino';

export type Log = pino.Logger;

export type Level = pino.LevelWithSilent;

/** A logger of one role; it writes to stderr, because stdout is for results of commands. */
export function openLog(options: {
  role: string;
  level: Level;
  people?: boolean;
  /** Writes lines before the call returns: for a thread that may kill its process. */
  sync?: boolean;
}): Log {
  const people = options.people ?? process.stderr.isTTY === true;
  const lines = pino.destination({ fd: 2, sync: people || options.sync === true });
  const destination = people ? { write: (line: string) => lines.write(forPeople(line)) } : lines;
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
function forPeople(line: string): string {
  const { time, level, role, msg, ...rest } = JSON.parse(line) as Record<string, string>;
  const facts = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : '';
  return `${time?.slice(11, 19)} ${level} ${role}: ${msg ?? ''}${facts}\n`;
}
