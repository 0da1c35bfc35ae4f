/** The lists of a session. */
import { bytesText, lengthText, offsetText } from '../../data/format.ts';
import type { ListName } from '../../data/log/model.ts';
import { route } from '../../data/router.ts';
import type { Session } from '../../data/types.ts';
import { Type } from '../../parts/filters.tsx';
import { useKeys } from '../../parts/keys.tsx';
import { Shape } from '../../parts/state.tsx';
import { Foreign } from '../../parts/text.tsx';
import { VirtualList } from '../../parts/virtual-list.tsx';
import { rangeOf, setRange, startOf } from './clock.ts';
import { Domains } from './domains.tsx';
import { EventsList, FilesList, Settings } from './facts.tsx';
import { PagesList } from './pages-list.tsx';
import type { Log } from './use-log.ts';

export type TabName = ListName | 'pages' | 'files' | 'events' | 'settings';
export const TABS: readonly [name: TabName, word: string][] = [
  ['cdp', 'CDP'],
  ['net', 'Network'],
  ['console', 'Console'],
  ['pages', 'Pages'],
  ['files', 'Files'],
  ['events', 'Events'],
  ['settings', 'Settings'],
];
const HINTS: Record<ListName, string> = {
  cdp: 'text, is:failed, is:slow, -domain:network',
  net: 'text, status:4xx, method:post, type:document',
  console: 'text or level:error',
};
const EMPTY: Record<ListName, string> = {
  cdp: 'No command or event yet. A session with logSession: false keeps none.',
  net: 'No request yet. Requests are listed while a client has the domain Network enabled.',
  console: 'No line yet. Lines are listed while a client has the domain Runtime or Log enabled.',
};

/** `tabs`: those to show; by default all. */
type Props = { session: Session; tab: TabName; log: Log; tabs?: typeof TABS };

export function Tabs({ session, tab, log, tabs = TABS }: Props) {
  const list = isList(tab) ? tab : undefined;
  return (
    <section class="lists" aria-label="Lists">
      <div class="tabs">
        <nav aria-label="Lists of the session">
          {tabs.map(([name, word]) => (
            <a key={name} href={hrefOf(name)} aria-current={name === tab ? 'page' : undefined}>
              {word}
              {isList(name) && log.isLoaded && <span class="count"> {log.counts[name]}</span>}
            </a>
          ))}
        </nav>
        {list !== undefined && <Tools session={session} list={list} log={log} />}
      </div>
      {list === 'cdp' && log.domains.length > 0 && <Domains domains={log.domains} />}
      {list !== undefined ? (
        <LogList session={session} list={list} log={log} />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
        <section class="scroll" tabIndex={0} aria-label={tab}>
          <Facts session={session} tab={tab} />
        </section>
      )}
    </section>
  );
}

type ToolProps = { session: Session; list: ListName; log: Log };

/** The filter of a list, the range of time that limits it, and its file. */
function Tools({ session, list, log }: ToolProps) {
  const range = rangeOf(session);
  const start = startOf(session);
  const clear = () => setRange(session, undefined);
  useKeys(range === undefined ? [] : [{ keys: 'Escape', does: 'show all times', run: clear }]);
  return (
    <div class="tools">
      {range !== undefined && (
        <button type="button" class="range" title="Show all times (Escape)" onClick={clear}>
          {offsetText(range.from - start)} – {offsetText(range.to - start)} s ×
        </button>
      )}
      <Type name="q" label="Filter" placeholder={HINTS[list]} />
      {list === 'net' && (
        <button type="button" title="The requests of this list as HAR 1.2" onClick={log.saveHar}>
          HAR
        </button>
      )}
    </div>
  );
}

function Facts({ session, tab }: Pick<Props, 'session' | 'tab'>) {
  switch (tab) {
    case 'pages':
      return <PagesList session={session} />;
    case 'files':
      return <FilesList session={session} />;
    case 'events':
      return <EventsList session={session} />;
    case 'settings':
      return <Settings session={session} />;
    default:
      return null; // the lists of the log
  }
}

function LogList({ session, list, log }: ToolProps) {
  const start = startOf(session);
  if (!log.isLoaded) return <p class="hint">Reading the log…</p>;
  if (log.error !== undefined && log.counts.cdp === 0) {
    return (
      <p class="error" role="alert">
        {log.error}
      </p>
    );
  }
  if (log.count === 0) {
    const isFiltered = route.value.query.has('q') || rangeOf(session) !== undefined;
    return <p class="hint">{isFiltered ? 'Nothing matches the filter.' : EMPTY[list]}</p>;
  }
  return (
    <VirtualList
      label={TABS.find(([name]) => name === list)?.[1] ?? list}
      count={log.count}
      selected={log.selected}
      near={log.near}
      onSelect={log.select}
      onWindow={log.see}
      render={(row) => <LogLine list={list} log={log} row={row} start={start} />}
    />
  );
}

type LineProps = { list: ListName; log: Log; row: number; start: number };

function LogLine({ list, log, row, start }: LineProps) {
  const line = log.rowAt(row);
  if (line === undefined) return <span class="none">…</span>;
  const { at, name, text, kind, code, state, lengthMs, bytes, note } = line;
  return (
    <>
      <span class="at">{offsetText(at - start)}</span>
      <Shape name={state} />
      {list === 'net' && <span class={`code ${state}`}>{code ?? codeWord(state)}</span>}
      <span class={list === 'cdp' ? 'name' : 'name short'}>
        <Foreign text={name} max={80} />
      </span>
      <span class="wide">
        <Foreign text={text} max={300} />
        {note !== undefined && <span class="state failed"> {note}</span>}
      </span>
      {list === 'net' && <span class="kind">{kind}</span>}
      {list === 'net' && <span class="size">{bytes === undefined ? '' : bytesText(bytes)}</span>}
      {list !== 'console' && (
        <span class="size">{lengthMs === undefined ? '' : lengthText(lengthMs)}</span>
      )}
    </>
  );
}

function codeWord(state: string): string {
  return state === 'failed' ? 'failed' : '–';
}

function hrefOf(tab: TabName): string {
  const query = new URLSearchParams(route.value.query);
  query.set('tab', tab);
  query.delete('e');
  query.delete('q');
  return `?${query}`;
}

function isList(tab: TabName): tab is ListName {
  return tab === 'cdp' || tab === 'net' || tab === 'console';
}
