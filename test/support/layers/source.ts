/**
 * Reads the repository's sources for test/layers.test.ts: the imports of a file, and the lengths of
 * its functions. Pure.
 */

export type Import = { target: string; isDynamic: boolean };
export type FunctionSpan = { name: string; line: number; lines: number };

/**
 * Comments or strings, whichever opens first. Strings of one line stay on their line, so an odd
 * quote costs one line.
 */
const TOKENS = new RegExp(
  [
    String.raw`\/\*[\s\S]*?\*\/`,
    String.raw`\/\/[^\n]*`,
    String.raw`'(?:\\.|[^'\\\n])*'`,
    String.raw`"(?:\\.|[^"\\\n])*"`,
    String.raw`\x60(?:\\.|[^\x60\\])*\x60`,
  ].join('|'),
  'g',
);
const IMPORTS = [
  /\b(?:import|export)\b[^'"`;()]*?\bfrom\s*['"]([^'"]+)['"]/g,
  /\bimport\s*['"]([^'"]+)['"]/g,
];
const DYNAMIC_IMPORTS = [
  /\bimport\s*\(\s*['"]([^'"]+)['"]/g,
  /\brequire(?:\.resolve)?\s*\(\s*['"]([^'"]+)['"]/g,
  /\bimport\.meta\.resolve\s*\(\s*['"]([^'"]+)['"]/g,
  /\bnew URL\(\s*['"](\.[^'"]+\.[cm]?[jt]s)['"]\s*,\s*import\.meta\.url/g,
];
const COMPUTED_IMPORT = /\b(?:import|require)\s*\(\s*[^'"\s)]/;
const FUNCTION_HEADS = [
  /^(?<indent>\s*)(?:export )?(?:default )?(?:async )?function\*? ?(?<name>\w*)/,
  /^(?<indent>\s*)(?:static |override |async |get |set )*(?<name>#?\w+)(?:<.*>)?\(.*\{$/,
  /^(?<indent>\s*).*?(?<name>\w*)\W*(?:async )?(?:\([^()]*\)|\w+)(?:: [^=]+)? => \{$/,
];
const NOT_FUNCTIONS = new Set(['if', 'for', 'while', 'switch', 'catch', 'with', 'using']);

/**
 * The text, line for line, without comments and without strings that cannot be a module's name: all
 * templates, and strings with a space or a quote.
 */
export function codeOf(text: string): string {
  return text.replace(TOKENS, (token) => {
    const isName = /^(['"])[^\s'"`]*\1$/.test(token);
    return isName ? token : token.replace(/(?!^[`'"]|[`'"]$)[^\n]/g, ' ');
  });
}

/** The comments of the text, in order. */
export function commentsOf(text: string): string {
  const tokens: string[] = text.match(TOKENS) ?? [];
  return tokens.filter((token) => token.startsWith('/')).join('\n');
}

/**
 * Everything the file names as a module: import, export from, import(), require(), a worker's URL;
 * types too.
 */
export function importsOf(text: string): Import[] {
  const code = codeOf(text);
  const found = (patterns: readonly RegExp[], isDynamic: boolean) =>
    patterns.flatMap((pattern) =>
      [...code.matchAll(pattern)].map(([, target = '']) => ({ target, isDynamic })),
    );
  return [...found(IMPORTS, false), ...found(DYNAMIC_IMPORTS, true)];
}

/** Whether it imports a module by a computed name. */
export function hasComputedImport(text: string): boolean {
  return COMPUTED_IMPORT.test(codeOf(text));
}

/**
 * The file's functions with their own lines: lines of a nested function are not counted twice.
 * Measured by indentation, which Biome guarantees: a function ends at the next line that is no
 * deeper than its head.
 */
export function functionsOf(text: string): FunctionSpan[] {
  const lines = text.split('\n');
  const ended: FunctionSpan[] = [];
  const open: { name: string; indent: number; line: number; lines: number }[] = [];
  lines.forEach((line, index) => {
    const indent = line.search(/\S/);
    if (indent < 0) return;
    const inner = open.at(-1);
    if (inner) inner.lines += 1;
    const head = headOf(line);
    const isTail = /^\s*[)}\]]/.test(line);
    if (inner && isTail && indent <= inner.indent && !/^\s*\)/.test(line)) {
      open.pop();
      ended.push({ name: inner.name, line: inner.line, lines: inner.lines });
    }
    if (head !== undefined) open.push({ name: head, indent, line: index + 1, lines: 1 });
  });
  return ended;
}

/**
 * The name of the function whose head the line is; empty for a nameless one, undefined when it
 * opens none.
 */
function headOf(line: string): string | undefined {
  if (/^\s*(?:\/?\*|\/\/)/.test(line)) return undefined;
  for (const pattern of FUNCTION_HEADS) {
    const name = pattern.exec(line)?.groups?.['name'];
    const isBody = name !== undefined && !NOT_FUNCTIONS.has(name) && !/[;}]$/.test(line);
    if (isBody) return name;
  }
  return undefined;
}
