// Opens a page with Stagehand 3 and prints what it found. MODE is `local` (disableAPI) or `hosted`.
import { Stagehand } from '@browserbasehq/stagehand';

const stagehand = new Stagehand({
  env: 'BROWSERBASE',
  apiKey: process.env.BROWSERBASE_API_KEY,
  projectId: process.env.BROWSERBASE_PROJECT_ID,
  disableAPI: process.env.MODE === 'local',
  model: { modelName: 'openai/gpt-4.1-mini', apiKey: 'no-model-is-asked' },
  disablePino: true,
  verbose: 0,
});
await stagehand.init();
const [page] = stagehand.context.pages();
await page.goto(process.env.SITE);
const seen = { title: await page.title(), sessionId: stagehand.browserbaseSessionID };
console.log(JSON.stringify(seen));
await stagehand.close();
process.exit(0);
