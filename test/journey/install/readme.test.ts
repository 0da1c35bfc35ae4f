/** The README's examples of sessions, run as they stand there but for the two addresses. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { shell } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/install/readme');
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PACKAGES = ['playwright-core', 'puppeteer-core'];

/** The example that imports this package. */
function example(name: string): string {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const start = text.indexOf('## Sessions');
  assert.not.equal(start, -1);
  const section = text.slice(start);
  const blocks = [...section.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code = '']) => code);
  return blocks.find((code) => code.includes(`from '${name}'`)) ?? '';
}

for (const name of PACKAGES) {
  journey(`the example for ${name} works`, async () => {
    await using site = await startSite();
    await using stack = await boot({ env: { TABERN_SESSION_GRACE_MS: '0' } });
    await using dir = tempDirectory();
    // where npm would have put it, its own dependencies beside it
    mkdirSync(join(dir.path, 'own'));
    symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
    const code = example(name)
      .replaceAll('http://127.0.0.1:4747', stack.url)
      .replaceAll('https://example.org/', `${site.url}/rooms`);
    const file = join(dir.path, 'own', 'page.mjs');
    writeFileSync(file, code);
    const ran = await shell([process.execPath, file], {
      cwd: dir.path,
      env: { TABERN_API_KEY: stack.apiKey },
    });
    assert.is(ran.code, 0, ran.stderr);
    assert.match(ran.stdout, name === 'playwright-core' ? /Rooms/ : /\/rooms/);
    const isOver = async () => {
      const [one] = await stack.call<{ status: string }[]>('/v1/sessions');
      return one?.status === 'COMPLETED';
    };
    await until(isOver);
  });
}

journey.run();
