/**
 * `tabern init [directory]`: creates a small project with a function that can be published
 * unchanged. Overwrites nothing.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, delimiter, join, resolve } from 'node:path';
import { shellWord } from '../../proto/common/shell-word.ts';
import { plain } from '../../proto/terminal/text.ts';
import { CliError, runHere, type Terminal } from './config.ts';

/** The version that the service is tested with. */
const PLAYWRIGHT = '1.65.1';
/** The types of "tabern" for editors, from runner/sdk (gateway/packaging/functions.ts). */
const TYPES = new URL('./gen/tabern.d.ts.txt', import.meta.url);

const ENTRY = `import { chromium } from 'playwright-core';
import { defineFn } from 'tabern';

/** Opens a page and gives its title. What a handler returns is the invocation's result. */
defineFn('title', async (ctx, params: { url?: string }) => {
  const { url = 'https://example.com/' } = params;
  console.log('opening', url);
  const browser = await chromium.connectOverCDP(ctx.session.connectUrl);
  const context = browser.contexts()[0] ?? (await browser.newContext());
  const page = context.pages()[0] ?? (await context.newPage());
  await page.goto(url);
  return { url: page.url(), title: await page.title() };
});
`;

/** With dom: code for page.evaluate is type-checked too. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  },
};

const README = `# NAME

A function that runs beside a browser, in tabern.

    npm install                # once, for \`tabern dev\` and your editor
    tabern dev index.ts        # runs it here, and again with each change
    tabern publish index.ts    # needs TABERN_API_KEY, and TABERN_BASE_URL of a service elsewhere
    tabern invoke title --params '{"url": "https://example.com/"}'

\`tabern\` is the command of the service; where PATH does not have it, call it
by its path, such as \`node ../tabern/gateway/tabern.js\`.
\`tabern.d.ts\` tells your editor what the service supplies as \`tabern\`: nothing is installed.
`;

/** The user's shell: how it calls tabern, and whether it finds npm. */
type Shell = { command: string; hasNpm: boolean };

/** Exit code 0 when the project was created. `commandOf`: how the shell calls tabern. */
export function run(
  argument: string,
  commandOf: (shell: { path: string }) => string,
): Promise<number> {
  return runHere((terminal, env) => {
    const path = env['PATH'] ?? '';
    const hasNpm = path.split(delimiter).some((folder) => existsSync(join(folder, 'npm')));
    return init(argument, terminal, { command: commandOf({ path }), hasNpm });
  });
}

export async function init(argument: string, terminal: Terminal, shell: Shell): Promise<number> {
  const root = resolve(terminal.cwd, argument === '' ? '.' : argument);
  const files = await filesOf(basename(root));
  const taken = Object.keys(files).filter((name) => existsSync(join(root, name)));
  if (taken.length > 0) {
    throw new CliError(`${taken.map(plain).join(', ')}: already there; choose an empty directory`);
  }
  await mkdir(root, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(root, name), text, { flag: 'wx' });
    terminal.print(join(argument, name));
  }
  for (const line of next(argument, shell)) terminal.say(line);
  return 0;
}

/** Each line after the first is a command that runs as it is. */
function next(argument: string, { command, hasNpm }: Shell): string[] {
  const local = ['npm install', `${command} dev index.ts`];
  const lines = [
    ...(argument === '' ? [] : [`cd ${shellWord(argument)}`]),
    ...(hasNpm ? local : []),
    `${command} publish index.ts`,
    `${command} invoke title`,
  ];
  return ['next:', ...lines.map((line) => `  ${line}`)];
}

async function filesOf(name: string): Promise<Record<string, string>> {
  return {
    'index.ts': ENTRY,
    'package.json': json({
      name: packageName(name),
      private: true,
      type: 'module',
      scripts: { dev: 'tabern dev index.ts', publish: 'tabern publish index.ts' },
      dependencies: { 'playwright-core': PLAYWRIGHT },
    }),
    'tsconfig.json': json(TSCONFIG),
    'tabern.d.ts': await readFile(TYPES, 'utf8'),
    '.gitignore': 'node_modules/\n.env*\n*.log\n',
    'README.md': README.replace('NAME', () => name),
  };
}

/** A valid npm name: lower case, without characters that a URL would escape. */
function packageName(name: string): string {
  const usable = name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  return usable.replace(/^[._-]+/, '') || 'functions';
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
