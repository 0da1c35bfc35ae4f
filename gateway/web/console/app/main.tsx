/** The console: who is logged in decides between the login and the pages. */
import { render } from 'preact';
import { api, type Me, me, sentenceOf } from '../data/api.ts';
import { startChanges } from '../data/changes.ts';
import { tick } from '../data/clock.ts';
import { readPreferences } from '../data/preferences.ts';
import { operatorPath, pathOf } from '../data/route.ts';
import { go, route, startRouter } from '../data/router.ts';
import { startKeys } from '../parts/keys.tsx';
import { lazy } from '../parts/lazy.tsx';
import { Failure } from '../parts/load.tsx';
import { Notice } from '../parts/notice.tsx';
import { Login } from './login.tsx';
import { Shell } from './shell.tsx';
import { failure } from './started.ts';

const TICK_MS = 1_000;
const SharedPage = lazy(async () => (await import('../pages/share/share.tsx')).SharedPage);

readPreferences();
startRouter();
startKeys();
setInterval(tick, TICK_MS);
const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no element "app"');
render(<App />, root);
if (route.value.page !== 'share') void askWho();

function App() {
  return (
    <>
      <Content />
      <Notice />
    </>
  );
}

function Content() {
  if (route.value.page === 'share') return <SharedPage />;
  if (failure.value !== undefined) {
    return (
      <main class="login">
        <Failure error={failure.value} again={() => void askWho()} />
      </main>
    );
  }
  if (me.value === undefined) return <p class="starting">Connecting…</p>;
  if (me.value === null) return <Login loggedIn={(who) => enter(who)} />;
  return <Shell me={me.value} />;
}

async function askWho(): Promise<void> {
  failure.value = undefined;
  try {
    await useCode();
    enter(await api<Me>('/console/api/v1/me'));
  } catch (error) {
    if (me.value !== null) failure.value = sentenceOf(error);
  }
}

/** A link of `tabern console` has a one-time code in its fragment. */
async function useCode(): Promise<void> {
  const code = /^#code=([\w-]{1,200})$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  history.replaceState(null, '', '/console');
  await api('/console/login', { code });
}

function enter(who: Me): void {
  me.value = who;
  startChanges();
  const { page, projectId } = route.value;
  const isOwnPage = projectId !== '' || page === 'operator';
  if (!isOwnPage) go(who.projectId === null ? operatorPath() : pathOf(who.projectId));
}
