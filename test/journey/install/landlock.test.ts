/** A build and an invocation with a real Chrome, on a machine without namespaces. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/install/landlock');
const PROJECT = {
  'package.json': '{"name":"title","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('title', async ({ session }) => {
  const socket = new WebSocket(session.connectUrl);
  await new Promise((resolve) => socket.addEventListener('open', resolve));
  const said = new Promise((resolve) => socket.addEventListener('message', resolve));
  socket.send('{"id":1,"method":"Browser.getVersion"}');
  const { data } = await said as MessageEvent;
  socket.close();
  return JSON.parse(data).result.product;
});
`,
};

journey('a function is published, and its invocation drives a browser', async () => {
  await using stack = await boot({ env: { TABERN_SANDBOX: 'landlock' } });
  const { title = '' } = await publish(stack, PROJECT);
  const { id } = await invoke(stack, title);
  const { status, results, cause } = await ended(stack, id);
  assert.is(status, 'COMPLETED', JSON.stringify(cause));
  assert.match(String(results), /^HeadlessChrome\//);
});

journey.run();
