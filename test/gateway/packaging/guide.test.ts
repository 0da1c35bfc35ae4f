/** The guide: pages are in the navigation, links lead somewhere, generated tables are complete. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { everyCommand } from '../../../gateway/cli/table.ts';
import { buildGuide } from '../../../gateway/packaging/guide/build.ts';
import { CONTENTS } from '../../../gateway/packaging/guide/contents.ts';
import { withParts } from '../../../gateway/packaging/guide/generated.ts';
import { rendered } from '../../../gateway/packaging/guide/markdown.ts';
import { must } from '../../../proto/common/must.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import { REASONS } from '../../../proto/rpc/errors.ts';

const test = suite('gateway/packaging/guide');
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, 'gateway/web/docs/guide');

const guide = buildGuide();
const htmlOf = (name: string) =>
  must(
    guide.pages.find((one) => one.name === name),
    name,
  ).html;

test('each file of the guide is in the navigation once', () => {
  const files = readdirSync(FOLDER).map((name) => name.replace(/\.md$/, ''));
  assert.equal(CONTENTS.flatMap(({ pages }) => pages).sort(), files.sort());
});

test('each setting, command and error is described', () => {
  for (const { name } of SETTINGS) assert.match(htmlOf('configuration'), `TABERN_${name}<`);
  for (const { usage } of everyCommand()) {
    assert.match(
      htmlOf('command-line'),
      `tabern ${usage.replaceAll('<', '&lt;').replaceAll('>', '&gt;')}`,
    );
  }
  for (const reason of Object.keys(REASONS)) assert.match(htmlOf('troubleshooting'), `${reason}<`);
});

test('a link to a page or heading that does not exist fails the build', () => {
  const build = (text: string) => () => buildGuide(new Map([['faq', `# FAQ\n\n${text}`]]));
  assert.throws(build('[x](nowhere.md)'), /faq\.md: nowhere\.md leads nowhere/);
  assert.throws(build('[x](sessions.md#nowhere)'), /sessions\.md#nowhere leads nowhere/);
  assert.throws(build('[x](#nowhere)'), /#nowhere leads nowhere/);
  assert.throws(build('{{nothing}}'), /\{\{nothing\}\} is no part/);
  build('[x](sessions.md#settings)')();
});

test('the links of README.md lead to files and headings', () => {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, href = '']) => href);
  assert.ok(links.length > 20);
  for (const href of links.filter((one) => !one.startsWith('http'))) {
    const [path = '', anchor] = href.split('#');
    const target = readFileSync(join(ROOT, path));
    if (anchor === undefined) continue;
    const { headings } = rendered(withParts(target.toString()), (link) => link);
    assert.ok(
      headings.some(({ id }) => id === anchor),
      href,
    );
  }
});

test('README.md is short', () => {
  const lines = readFileSync(join(ROOT, 'README.md'), 'utf8').trimEnd().split('\n').length;
  assert.ok(lines >= 120 && lines <= 200, `${lines} lines`);
});

test('code is coloured and escaped, headings have the anchors of GitHub', () => {
  const { html, headings } = rendered(
    '# A page\n\n## Files: `x` and <y>\n\n## Twice\n\n## Twice\n\n```js\nconst a = "<b>";\n```\n',
    (href) => href,
  );
  assert.equal(
    headings.map(({ id }) => id),
    ['a-page', 'files-x-and-y', 'twice', 'twice-1'],
  );
  assert.match(html, '<span class="hljs-string">&quot;&lt;b&gt;&quot;</span>');
});

test.run();
