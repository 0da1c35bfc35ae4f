/** A Chrome of the tests leaves no process, not even one that no longer answers. */
import { test } from 'uvu';
import { ok } from 'uvu/assert';
import { until } from './support/poll.ts';
import { openPlainChrome } from './support/runner/plain-chrome.ts';
import { familyOf, type Process, stillRunning } from './support/service/processes.ts';

test('the end of a plain Chrome ends a renderer that is stuck', async () => {
  const started: Process[] = [];
  {
    await using _chrome = await openPlainChrome();
    const isRenderer = ({ command }: Process) => command.includes('--type=renderer');
    const renderer = await until(() => familyOf(process.pid).find(isRenderer));
    started.push(...familyOf(process.pid).slice(1));
    process.kill(renderer.pid, 'SIGSTOP');
  }
  ok(started.length > 1);
  await until(() => stillRunning(started).length === 0);
});

test.run();
