/**
 * `tabern init [directory]`: creates a small project with a function that can be published
 * unchanged. Overwrites nothing.
 */
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { plain } from './api.ts';
import { CliError, runHere, type Terminal } from './config.ts';

/** The version that the service is tested with. */
const PLAYWRIGHT = '1.65.1';
/** The types of "tabern" for editors: runner/sdk's types, as one declaration. */
const TYPES = new URL('./tabern.d.ts.txt', import.meta.url);

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

A function that runs beside a browser, in [tabern](https://www.npmjs.com/package/tabern).

    npm install                # once, for \`tabern dev\` and your editor
    tabern dev index.ts        # runs it here, and again with each change
    tabern publish index.ts    # needs TABERN_API_KEY, and TABERN_BASE_URL of a service elsewhere
    tabern invoke title --params '{"url": "https://example.com/"}'

\`tabern.d.ts\` tells your editor what the service supplies as \`tabern\`: nothing is installed.
`;

/** Exit code 0 when the project was created. */
export function run(argument: string): Promise<number> {
  return runHere((terminal) => init(argument, terminal));
}

export async function init(argument: string, terminal: Terminal): Promise<number> {
  const root = resolve(terminal.cwd, argument === '' ? '.' : argument);
  const files = await filesOf(basename(root));
  const there = await Promise.all(Object.keys(files).map((name) => isThere(join(root, name))));
  const taken = Object.keys(files).filter((_, index) => there[index]);
  if (taken.length > 0) {
    throw new CliError(`${taken.map(plain).join(', ')}: already there; choose an empty directory`);
  }
  await mkdir(root, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(root, name), text, { flag: 'wx' });
    terminal.print(join(argument, name));
  }
  terminal.say('next: npm install, then: tabern dev index.ts, or: tabern publish index.ts');
  return 0;
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
    'README.md': README.replace('NAME', name),
  };
}

/** A valid npm name: lower case, without characters that a URL would escape. */
function packageName(name: string): string {
  const usable = name
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '');
  return usable === '' ? 'functions' : usable;
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
