/** Handlers of expected system errors: `await readFile(path).catch(orMissing)` may be undefined. */

/** Returns undefined for an error with one of these codes; throws any other error. */
export function ignoring(...codes: string[]): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (!codes.includes(error.code ?? '')) throw error;
  };
}

export const orMissing = ignoring('ENOENT');
