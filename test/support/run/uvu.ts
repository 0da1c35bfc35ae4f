/**
 * uvu that counts: stands in for it in every file that test/run.ts runs. A suite is the same to its
 * author, except that hooks are refused: uvu passes a suite whose hook throws, and `await using`
 * does their work in the open.
 */
import { inspect } from 'node:util';
import * as uvu from 'uvu';

/**
 * What became of the tests of one file. `problems` are the holes: each fails the file, whatever
 * else passed.
 */
export type Report = { passed: number; failed: number; problems: string[] };

type TestState = 'not run' | 'started' | 'passed' | 'failed';
type TestRecord = { name: string; state: TestState };
type SuiteRecord = { name: string; runs: number; tests: TestRecord[]; left: string[] };

const suites: SuiteRecord[] = [];

/** uvu's `suite`, counted. */
export function suite<T = Record<string, unknown>>(name = '', context?: T): uvu.Test<T> {
  return counted(uvu.suite<T>(name, context), name);
}

/** uvu's nameless suite, counted. */
export const test = counted(uvu.suite(), '');

/** uvu's runner, for what imports it. */
export const exec = uvu.exec;

/** What became of everything that was registered until now. */
export function report(): Report {
  const used = suites.filter(({ name, runs, tests }) => name || runs > 0 || tests.length > 0);
  const tests = used.flatMap((one) => one.tests);
  const passed = tests.filter(({ state }) => state === 'passed').length;
  const problems = used.flatMap(problemsOf);
  if (used.every(({ runs }) => runs === 0)) problems.push('no suite was queued: call .run()');
  return { passed, failed: tests.length - passed, problems };
}

function problemsOf({ name, runs, tests, left }: SuiteRecord): string[] {
  const title = name ? `suite "${name}"` : 'the nameless suite';
  if (runs === 0) return [`${title} was never queued: call .run()`];
  if (tests.length === 0 && left.length === 0) return [`${title} has no tests`];
  const idle = tests.filter(({ state }) => state === 'not run' || state === 'started');
  return [
    ...left.map((test) => `${title}: "${test}" is skipped: mend it or take it out`),
    ...idle.map((test) => `${title}: "${test.name}" ${test.state}, and never ended`),
  ];
}

function counted<T>(inner: uvu.Test<T>, name: string): uvu.Test<T> {
  const record: SuiteRecord = { name, runs: 0, tests: [], left: [] };
  suites.push(record);
  const follow = (title: string, handler: uvu.Callback<T>): uvu.Callback<T> => {
    const test: TestRecord = { name: title, state: 'not run' };
    record.tests.push(test);
    return (context) => followed(test, async () => handler(context));
  };
  const outer = (title: string, handler: uvu.Callback<T>) => inner(title, follow(title, handler));
  return Object.assign(outer, {
    only: (title: string, handler: uvu.Callback<T>) => inner.only(title, follow(title, handler)),
    skip: (title = 'a nameless test') => {
      record.left.push(title);
      inner.skip();
    },
    before: refusedHook('before'),
    after: refusedHook('after'),
    run: () => {
      record.runs += 1;
      inner.run();
    },
  });
}

/** A test is passed when its handler returned, and by nothing else. */
async function followed(test: TestRecord, handler: () => Promise<void>): Promise<void> {
  test.state = 'started';
  try {
    await handler();
    test.state = 'passed';
  } catch (error) {
    test.state = 'failed';
    throw shown(error);
  }
}

/**
 * uvu dies on what is not an Error, and prints neither a cause nor the two halves of a
 * SuppressedError.
 */
function shown(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`threw ${inspect(error)}`);
  const parts = halvesOf(error);
  const hasMore = parts.length > 1 || error instanceof AggregateError || error.cause !== undefined;
  if (hasMore) for (const part of parts) console.error(inspect(part));
  return error;
}

/** Node's inspect shows neither half. */
function halvesOf(error: unknown): unknown[] {
  if (!(error instanceof SuppressedError)) return [error];
  return [...halvesOf(error.error), ...halvesOf(error.suppressed)];
}

function refusedHook(name: string) {
  const refuse = () => {
    throw new Error(`no hooks: ${name} is green in uvu when it throws; use \`await using\``);
  };
  return Object.assign(refuse, { each: refuse });
}
