/**
 * Programs that open a page in a session, with the address of this service and the project's id.
 * The key is read from TABERN_API_KEY, so that none is in a file. Pure.
 */

/** `name`: a file to write the text to; without one it is a command. */
export type Block = { name?: string; text: string };
export type Snippet = { title: string; blocks: readonly Block[] };

type Target = { baseUrl: string; projectId: string };

export function snippetsOf(target: Target): readonly Snippet[] {
  return [
    { title: 'curl', blocks: [{ text: curl(target) }] },
    {
      title: 'Playwright',
      blocks: [
        { text: 'npm install playwright-core' },
        { name: 'page.mjs', text: playwright(target) },
        { text: 'node page.mjs' },
      ],
    },
    {
      title: 'Puppeteer',
      blocks: [
        { text: 'npm install puppeteer-core' },
        { name: 'page.mjs', text: puppeteer(target) },
        { text: 'node page.mjs' },
      ],
    },
    {
      title: 'Stagehand',
      blocks: [
        { text: 'npm install @browserbasehq/stagehand' },
        { text: stagehandVariables(target) },
        { name: 'agent.mjs', text: STAGEHAND },
        { text: 'node agent.mjs' },
      ],
    },
    { title: 'Function', blocks: [{ text: ofFunction(target) }] },
  ];
}

function curl({ baseUrl, projectId }: Target): string {
  return `curl -X POST ${baseUrl}/v1/sessions \\
  -H "X-SVC-API-Key: $TABERN_API_KEY" -H "Content-Type: application/json" \\
  -d '{"projectId": "${projectId}", "keepAlive": true}'`;
}

function create({ baseUrl, projectId }: Target): string {
  return `const answer = await fetch('${baseUrl}/v1/sessions', {
  method: 'POST',
  headers: {
    'X-SVC-API-Key': process.env.TABERN_API_KEY,
    'Content-Type': 'application/json',
  },
  body: JSON.stringify({ projectId: '${projectId}' }),
});
if (!answer.ok) throw new Error(await answer.text());
const { id, connectUrl } = await answer.json();`;
}

function playwright(target: Target): string {
  return `import { chromium } from 'playwright-core';

${create(target)}

const browser = await chromium.connectOverCDP(connectUrl);
const page = browser.contexts()[0].pages()[0];
await page.goto('https://example.com/');
console.log(id, await page.title());
await browser.close(); // the last client disconnects: the session ends`;
}

function puppeteer(target: Target): string {
  return `import puppeteer from 'puppeteer-core';

${create(target)}

const browser = await puppeteer.connect({ browserWSEndpoint: connectUrl });
const [page] = await browser.pages();
await page.goto('https://example.com/');
console.log(id, await page.title());
await browser.disconnect(); // the last client disconnects: the session ends`;
}

function stagehandVariables({ baseUrl, projectId }: Target): string {
  return `export BROWSERBASE_API_KEY=$TABERN_API_KEY
export BROWSERBASE_PROJECT_ID=${projectId}
export BROWSERBASE_BASE_URL=${baseUrl}
export STAGEHAND_API_URL=${baseUrl}`;
}

const STAGEHAND = `import { Stagehand } from '@browserbasehq/stagehand';

const model = { modelName: 'openai/gpt-4.1-mini', apiKey: process.env.OPENAI_API_KEY };
const stagehand = new Stagehand({ env: 'BROWSERBASE', model });
await stagehand.init();
const [page] = stagehand.context.pages();
await page.goto('https://example.com/');
console.log(await page.title());
await stagehand.close();`;

function ofFunction({ baseUrl }: Target): string {
  return `export TABERN_BASE_URL=${baseUrl}
tabern init first && cd first
npm install
tabern publish index.ts
tabern invoke title --params '{"url":"https://example.com/"}'`;
}
