/** The environment of handlers: a list of variables, so that none of the host's own leaks. */
import process from 'node:process';

const PASSED_ON = [
  ...['HOME', 'TMPDIR', 'TZ', 'LANG', 'NODE_ENV', 'NODE_USE_ENV_PROXY'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
];

export function handlerEnv(): Record<string, string> {
  const passed = PASSED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(passed);
}

/** On a thread: deletes variables that only the runtime needs; it has read them by now. */
export function hideOwnEnv(): void {
  delete process.env['NODE_COMPILE_CACHE'];
}
