/** The text as one word of a POSIX shell, quoted when needed. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:,][\w./@%+=:,-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
