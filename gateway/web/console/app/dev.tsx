/** The page of `tabern dev`: the runs of one machine, without a service, a login or a project. */
import { render } from 'preact';
import { tick } from '../data/clock.ts';
import { startRouter } from '../data/router.ts';
import { DevPage } from '../pages/dev/dev.tsx';
import { startKeys } from '../parts/keys.tsx';
import { Notice } from '../parts/notice.tsx';

const TICK_MS = 1_000;

startRouter();
startKeys();
setInterval(tick, TICK_MS);
const root = document.getElementById('app');
if (root === null) throw new Error('dev.html has no element "app"');
render(
  <>
    <DevPage />
    <Notice />
  </>,
  root,
);
