/**
 * The command type: an entry of the table from which the parser, its help and README.md are built.
 */

/** Parsed options, by their names in lower camel case. */
export type Given = Readonly<Record<string, string | boolean | undefined>>;

/** `flags` is in commander's syntax: `--params <json>`, `-f, --follow`. */
export type Flag = { flags: string; description: string; default?: string | undefined };

export type Command = {
  /** Words, then <required> and [optional] arguments; the last may be <variadic...>. */
  usage: string;
  /** One line without a full stop. */
  description: string;
  /** An example to copy. */
  example: string;
  /**
   * Target of the command; it determines the common options: `role` runs a role of the service,
   * `project` calls the service with an API key, `operator` uses core's data directory, `settings`
   * reads all settings, `local` needs none.
   */
  kind: 'role' | 'project' | 'operator' | 'settings' | 'local';
  flags?: readonly Flag[];
  /** Returns the exit code. The module of the command is loaded only here. */
  run(words: readonly string[], given: Given): Promise<number>;
};

/** Commands under one heading of `tabern --help`. */
export type Section = { heading: string; commands: readonly Command[] };

export function flag(flags: string, description: string, fallback?: string): Flag {
  return { flags, description, default: fallback };
}

/** The words of a usage before its arguments. */
export function wordsOf(usage: string): string[] {
  return usage.split(' ').filter((word) => !/^[<[]/.test(word));
}
