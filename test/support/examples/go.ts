/** The syntax of a Go example, by the grammar of tree-sitter: no machine of the tests has Go. */
import type { Reader } from './reader.ts';

const PARSE = `
import { readFileSync } from 'node:fs';
import { Language, Parser } from 'web-tree-sitter';

await Parser.init();
const parser = new Parser();
const go = new URL('node_modules/tree-sitter-go/tree-sitter-go.wasm', import.meta.url);
parser.setLanguage(await Language.load(readFileSync(go)));
const isWrong = (file) => parser.parse(readFileSync(file, 'utf8')).rootNode.hasError;
console.log(process.argv.slice(2).map((file) => (isWrong(file) ? 'wrong' : 'right')).join());
`;

/** Throws when the code is no Go, or when the grammar finds no fault in a wrong one. */
export async function checkGo(reader: Reader, code: string): Promise<void> {
  await reader.write('main.go', code);
  await reader.write('wrong.go', code.replace('func main()', 'func main('));
  await reader.write('parse.mjs', PARSE);
  const packages = 'web-tree-sitter@0.27.2 tree-sitter-go@0.25.0';
  await reader.run(`npm install --ignore-scripts --legacy-peer-deps ${packages}`);
  const said = await reader.run('node parse.mjs main.go wrong.go');
  if (!/^right,wrong$/m.test(said)) throw new Error(`main.go: ${said}`);
}
