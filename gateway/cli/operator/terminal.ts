/** Output of commands: text for people, JSON for programs. */
import type { Given } from '../command.ts';

/** Prints the value as JSON with --json, else calls `show`. Returns the exit code of success. */
export function answer(given: Given, value: unknown, show: () => void): number {
  if (given['json'] === true) print(JSON.stringify(value));
  else show();
  return 0;
}

/** Prints one result on stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints a message on stderr. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
