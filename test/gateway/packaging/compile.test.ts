/** Compiled modules name one another; nothing else that looks like a name is touched. */
import { suite } from 'uvu';
import { is } from 'uvu/assert';
import { renamed } from '../../../gateway/packaging/compile.ts';

const test = suite('gateway/packaging/compile');

test('imports, threads and paths in a jail refer to compiled files', () => {
  is(renamed('import { a } from "./a.ts";'), 'import { a } from "./a.js";');
  is(renamed('export { a } from "../b/a.ts";'), 'export { a } from "../b/a.js";');
  is(renamed('await import("./a.ts")'), 'await import("./a.js")');
  is(
    renamed('new Worker(new URL("./a.ts", import.meta.url))'),
    'new Worker(new URL("./a.js", import.meta.url))',
  );
  is(renamed('at("/app/runner/host/main.ts")'), 'at("/app/runner/host/main.js")');
});

test('a user’s index.ts keeps its name', () => {
  for (const code of [
    'const example = "tabern publish index.ts";',
    'write("./index.ts")',
    'import "typescript/lib.ts"',
    'new URL("./index.ts", project)',
  ]) {
    is(renamed(code), code);
  }
});

test.run();
