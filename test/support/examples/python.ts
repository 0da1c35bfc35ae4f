/**
 * The Python examples: in a virtual environment with packages of PyPI, as they are. Where PyPI
 * cannot be reached, their syntax and their REST part, with Debian's python3-requests, and a line
 * that says so.
 */
import type { Reader } from './reader.ts';

const PYTHON = '/usr/bin/python3';
/** In seconds, of one connection: a network without PyPI drops it. */
const PIP = 'export PIP_DEFAULT_TIMEOUT=15 PIP_RETRIES=1 PIP_DISABLE_PIP_VERSION_CHECK=1';
/** Left in the directory when pip has no packages. */
const ABSENT = 'no-pypi';

/** Runs the commands that create the environment and install packages. */
export async function installPython(reader: Reader, commands: string): Promise<void> {
  const own = commands.replace('python3 ', `${PYTHON} `);
  const failure = await reader.run(`${PIP}\n${own}`).then(() => undefined, String);
  if (failure === undefined) return;
  // a wrong example fails where pip itself works
  const probe = 'python -m pip download --quiet --no-deps --dest probe requests';
  const hasPypi = await reader.run(`. venv/bin/activate\n${PIP}\n${probe}`).then(
    () => true,
    () => false,
  );
  if (hasPypi) throw new Error(failure);
  console.log('without PyPI, the Python examples run with python3-requests, up to Playwright');
  await reader.write(ABSENT, '');
}

/** Runs `python <file>` of the guide; its output must match. */
export async function runPython(reader: Reader, command: string, says: RegExp): Promise<void> {
  const isAbsent = (await reader.read(ABSENT).catch(() => undefined)) !== undefined;
  const output = await reader.run(isAbsent ? await restOf(reader, command) : command);
  if (!says.test(output)) throw new Error(`${command} printed ${output}`);
}

/** The commands for the part before Playwright. */
async function restOf(reader: Reader, command: string): Promise<string> {
  const name = command.trim().replace(/^python /, '');
  const [rest = ''] = (await reader.read(name)).split('with sync_playwright()');
  const own = rest.replace(/^from playwright.*\n/m, '');
  await reader.write('rest.py', `${own}\nprint(answer.json()["connectUrl"])\n`);
  return `${PYTHON} -m py_compile ${name}\n${PYTHON} rest.py`;
}

/** Checks the syntax: what the example imports is not installed. */
export async function checkPython(reader: Reader, name: string, code: string): Promise<void> {
  await reader.write(name, code);
  await reader.run(`${PYTHON} -m py_compile ${name}`);
}
