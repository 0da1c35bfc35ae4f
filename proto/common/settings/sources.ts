/**
 * The source of a setting's value: a flag, a variable, the file that a variable names, or a line of
 * the settings file. Values of flags and of the settings file are written into the variables, which
 * every role reads; this module records their sources.
 */
import { ConfigError, type Env } from '../env.ts';

export type Origin = 'flag' | 'variable' | 'file of the variable' | 'settings file' | 'default';

/** `label` is the place in error messages: `--port`, or `port in tabern.json:3`. */
type Source = { from: Origin; label: string };

/** By variable. A value that was overwritten later has the environment as its source. */
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
