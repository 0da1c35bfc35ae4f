/**
 * Where the value of a setting stands: a flag, a variable, the file that a variable names, or a
 * line of the settings file. Flags and the settings file are written into the variables, which
 * every role reads; this module remembers which of them were.
 */
import { ConfigError, type Env } from '../env.ts';

export type Origin = 'flag' | 'variable' | 'file of the variable' | 'settings file' | 'default';

/** `label` is how an error names the place: `--port`, or `port in tabern.json:3`. */
type Source = { from: Origin; label: string };

/** Of this process, by variable. A value that was overwritten since is the environment's own. */
const given = new Map<string, Source & { value: string }>();

/** Sets a variable for a flag or for a member of the settings file. */
export function setVariable(
  env: NodeJS.ProcessEnv,
  variable: string,
  source: Source & { value: string },
): void {
  env[variable] = source.value;
  delete env[`${variable}_FILE`];
  given.set(variable, source);
}

/** Undefined when the variable is not set. */
export function sourceOf(env: Env, variable: string): Source | undefined {
  const source = given.get(variable);
  const direct = env[variable];
  if (direct?.trim()) {
    return source?.value === direct ? source : { from: 'variable', label: variable };
  }
  const path = env[`${variable}_FILE`]?.trim();
  return path ? { from: 'file of the variable', label: `${variable}_FILE (${path})` } : undefined;
}

/** A value that cannot be used. `problem` is the end of a sentence that begins with its source. */
export function settingError(
  env: Env,
  variable: string,
  { problem, cause }: { problem: string; cause?: unknown },
): ConfigError {
  const { label } = sourceOf(env, variable) ?? { label: variable };
  return new ConfigError(`${label} ${problem}`, { cause });
}
