/** What a command is: an entry of the table that the parser, its help and README.md come from. */

/** The options as given, by their names in lower camel case. */
export type Given = Readonly<Record<string, string | boolean | undefined>>;

export type Flag = {
  /** As commander takes it: `--params <json>`, `-f, --follow`. */
  flags: string;
  says: string;
  default?: string;
};

export type Command = {
  /**
   * As it is typed, behind `tabern`: words, then <needed> and [optional] arguments, the last of
   * which may be <many...>.
   */
  usage: string;
  /** What it does: a line without a full stop. */
  says: string;
  /** A line to copy. */
  example: string;
  /**
   * What it talks to, which decides the options that it has beside its own: `role` is a part of
   * the service, `project` calls the service with an API key, `operator` works on core's data
   * directory, `settings` reads them all, `local` needs none.
   */
  kind: 'role' | 'project' | 'operator' | 'settings' | 'local';
  flags?: readonly Flag[];
  /** Gives the exit code. Its module is loaded here and not before. */
  run(words: readonly string[], given: Given): Promise<number>;
};

/** Commands under one heading of `tabern --help`. */
export type Section = { heading: string; commands: readonly Command[] };
