/** The frame of every page: the rail, the bar, the page, and the dialogs that keys open. */
import { useEffect, useState } from 'preact/hooks';
import { api, isOperator, type Me, me as who } from '../data/api.ts';
import { isLive } from '../data/changes.ts';
import { isUtc } from '../data/clock.ts';
import { operatorPath, type PageName, pathOf } from '../data/route.ts';
import { go, route } from '../data/router.ts';
import { useKeys } from '../parts/keys.tsx';
import { Empty } from '../parts/load.tsx';
import { copy } from '../parts/text.tsx';
import { Help } from './help.tsx';
import { Palette } from './palette.tsx';
import { Project, projectName } from './projects.tsx';
import { pageOf } from './routes.tsx';

const RAIL: readonly [list: string, name: string, key: string, pages: PageName[], icon: string][] =
  [
    ['', 'Overview', 'o', ['overview'], 'M2 2h5v6H2zM9 2h5v3H9zM9 7h5v7H9zM2 10h5v4H2z'],
    ['sessions', 'Sessions', 's', ['sessions', 'session'], 'M1 3h14v10H1zm1.5 3v5.5h11V6z'],
    ['runs', 'Runs', 'r', ['runs', 'run'], 'M4 2.5 13 8l-9 5.5z'],
    [
      'functions',
      'Functions',
      'f',
      ['functions', 'function', 'publish', 'builds', 'build'],
      'M5 3 1 8l4 5h2L3 8l4-5zm4 0 4 5-4 5h2l4-5-4-5z',
    ],
    [
      'webhooks',
      'Webhooks',
      'w',
      ['webhooks', 'webhook'],
      'M1 3h14v10H1zm1.6 1.5L8 9l5.4-4.5zM2.5 6v5.5h11V6L8 10.7z',
    ],
    [
      'contexts',
      'Contexts',
      'c',
      ['contexts'],
      'M8 1a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM2 14c0-3 2.5-5 6-5s6 2 6 5v1H2z',
    ],
    ['files', 'Files', 'd', ['files'], 'M3 1h6l4 4v10H3zm1.5 1.5v11h7V6H8V2.5z'],
    ['usage', 'Usage', 'u', ['usage'], 'M1 14h14v1H1zM2 8h3v5H2zm4.5-4h3v9h-3zM11 1h3v12h-3z'],
    [
      'settings',
      'Settings',
      'k',
      ['settings'],
      'M5 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zm0 2.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM9 7h6v3H9z',
    ],
  ];
const PLACES: Partial<Record<PageName, string>> = {
  session: 'Session',
  run: 'Run',
  webhook: 'Webhook',
  function: 'Function',
  publish: 'Publish',
  builds: 'Builds',
  build: 'Build',
};
const OPERATOR_ICON =
  'M8 1 2 3.5V8c0 3.5 2.6 6 6 7 3.4-1 6-3.5 6-7V3.5zm0 1.7 4.5 1.9V8c0 2.6-1.9 4.6-4.5 5.4z';
const OPERATOR = [
  ['', 'Projects'],
  ['sessions', 'Sessions'],
  ['runners', 'Runners'],
  ['queues', 'Queues'],
  ['events', 'Events'],
  ['doctor', 'Doctor'],
  ['backup', 'Backup'],
] as const;

export function Shell({ me }: { me: Me }) {
  const [dialog, setDialog] = useState<'help' | 'palette'>();
  // a key may have opened the other one before this one reports its end
  const close = (own: string) => () => setDialog((now) => (now === own ? undefined : now));
  const { page, projectId } = route.value;
  const own = me.projectId ?? projectId;
  const isOfOperator = me.projectId === null;
  useTitle(me);
  useKeys([
    {
      keys: 'Ctrl+K or /',
      does: 'search',
      run: () => {
        if (own !== '') setDialog('palette');
      },
    },
    { keys: '?', does: 'this help', run: () => setDialog('help') },
    { keys: 'y', does: 'copy the address of this page', run: () => void copy(location.href) },
    ...(own === '' ? [] : RAIL).map(([list, name, key]) => {
      return { keys: `g ${key}`, does: name, run: () => go(pathOf(own, list)) };
    }),
    ...(isOfOperator ? [{ keys: 'g a', does: 'Operator', run: () => go(operatorPath()) }] : []),
  ]);
  const isOther = isOfOperator ? false : projectId !== me.projectId && projectId !== '';
  const isRefused = isOther || (page === 'operator' && !isOfOperator);
  return (
    <div class="shell">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <Rail projectId={own} page={page} />
      <Bar me={me} search={() => setDialog('palette')} help={() => setDialog('help')} />
      <main id="page" tabIndex={-1} key={isOfOperator ? projectId : ''}>
        {isRefused ? <OtherProject me={me} /> : pageOf(route.value)}
      </main>
      {dialog === 'help' && <Help close={close('help')} />}
      {dialog === 'palette' && <Palette projectId={own} close={close('palette')} />}
    </div>
  );
}

function Rail({ projectId, page }: { projectId: string; page: PageName }) {
  return (
    <nav class="rail" aria-label="Pages">
      <span class="brand">tabern</span>
      {(projectId === '' ? [] : RAIL).map(([list, name, , pages, icon]) => (
        <a
          key={name}
          href={pathOf(projectId, list)}
          aria-current={pages.includes(page) ? 'page' : undefined}
        >
          <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
            <path d={icon} fill="currentColor" fill-rule="evenodd" />
          </svg>
          {name}
        </a>
      ))}
      {isOperator() && <OperatorRail isInProject={projectId !== ''} />}
    </nav>
  );
}

function OperatorRail({ isInProject }: { isInProject: boolean }) {
  const [list = ''] = route.value.id.split('/');
  const pages = isInProject ? ([['', 'Operator']] as const) : OPERATOR;
  return (
    <>
      {pages.map(([name, title]) => (
        <a
          key={name}
          href={operatorPath(name)}
          aria-current={!isInProject && list === name ? 'page' : undefined}
        >
          <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
            <path d={OPERATOR_ICON} fill="currentColor" fill-rule="evenodd" />
          </svg>
          {title}
        </a>
      ))}
    </>
  );
}

function Bar({ me, search, help }: { me: Me; search: () => void; help: () => void }) {
  const isInProject = me.projectId !== null || route.value.projectId !== '';
  const logOut = async () => {
    await api('/console/logout', {}).catch(() => undefined);
    who.value = null;
  };
  return (
    <header class="bar">
      <Project me={me} />
      {isInProject && (
        <span class={`dot ${isLive.value ? 'live' : 'lost'}`}>
          {isLive.value ? 'Live' : 'Reconnecting'}
        </span>
      )}
      <span class="space" />
      {isInProject && (
        <button type="button" class="search" onClick={search}>
          Search <kbd>Ctrl K</kbd>
        </button>
      )}
      <button
        type="button"
        class="plain"
        title="Show times in the zone of this machine or in UTC"
        onClick={() => {
          isUtc.value = !isUtc.value;
        }}
      >
        {isUtc.value ? 'UTC' : 'Local time'}
      </button>
      <button type="button" class="plain" aria-label="Keys" onClick={help}>
        ?
      </button>
      <button type="button" class="plain" onClick={() => void logOut()}>
        Log out
      </button>
    </header>
  );
}

function OtherProject({ me }: { me: Me }) {
  return (
    <Empty title="This address belongs to another project, or to the operator.">
      <p>
        Log in with its key, or by <code>tabern console --operator</code>, or go to the{' '}
        <a href={pathOf(me.projectId ?? '')}>overview of this one</a>.
      </p>
    </Empty>
  );
}

function useTitle(me: Me): void {
  const { page, id } = route.value;
  const project = projectName(me) ?? 'tabern';
  useEffect(() => {
    const list = OPERATOR.find(([name]) => name === id.split('/')[0]);
    const place = page === 'operator' ? list?.[1] : PLACES[page];
    const name = RAIL.find(([, , , pages]) => pages.includes(page))?.[1];
    document.title = [place ?? name, project].filter(Boolean).join(' · ');
  }, [page, id, project]);
}
