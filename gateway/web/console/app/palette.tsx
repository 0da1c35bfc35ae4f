/** Search over the project: any id, name, label or address of a recorded page. */
import { useEffect, useState } from 'preact/hooks';
import { api, sentenceOf, withQuery } from '../data/api.ts';
import { pathOf } from '../data/route.ts';
import { go } from '../data/router.ts';
import type { SearchResult } from '../data/types.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Foreign, Time } from '../parts/text.tsx';

const TYPING_MS = 150;
const PLACES: readonly [list: string, name: string][] = [
  ['', 'Overview'],
  ['sessions', 'Sessions'],
  ['runs', 'Runs'],
  ['functions', 'Functions'],
  ['webhooks', 'Webhooks'],
  ['contexts', 'Contexts'],
  ['files', 'Files'],
  ['usage', 'Usage'],
  ['settings', 'Settings'],
];
const WORDS: Record<string, string> = {
  SESSIONS: 'session',
  INVOCATIONS: 'run',
  BUILDS: 'build',
  DELIVERIES: 'delivery',
  FUNCTIONS: 'function',
  WEBHOOKS: 'webhook',
  CONTEXTS: 'context',
  DOWNLOADS: 'file',
};

type Hit = { href: string; word: string; text: string; at?: string };

export function Palette({ projectId, close }: { projectId: string; close: () => void }) {
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const { hits, error, isBusy } = useHits(projectId, text);
  const open = (hit: Hit | undefined) => {
    if (hit === undefined) return;
    close();
    go(hit.href);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter') open(hits[selected]);
    else if (step !== undefined) {
      setSelected((old) => Math.min(hits.length - 1, Math.max(0, old + step)));
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Search" close={close}>
      <input
        type="text"
        // biome-ignore lint/a11y/noRedundantRoles: without a list element it is a text box
        role="combobox"
        list={undefined}
        class="palette"
        maxLength={128}
        aria-expanded="true"
        aria-controls="hits"
        aria-label="Search"
        aria-activedescendant={hits.length > 0 ? `hit-${selected}` : undefined}
        placeholder="An id, a name, a label or an address"
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value.trim());
          setSelected(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="hits" class="hits" role="listbox" aria-label="Results">
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text box has the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the text box has the focus
          <div
            key={`${hit.word} ${hit.href} ${hit.text}`}
            id={`hit-${index}`}
            role="option"
            aria-selected={index === selected}
            onClick={() => open(hit)}
          >
            <span class="word">{hit.word}</span>
            <Foreign text={hit.text} max={80} />
            {hit.at !== undefined && <Time at={hit.at} />}
          </div>
        ))}
      </div>
      {error !== undefined && <p class="error">{error}</p>}
      {hits.length === 0 && error === undefined && (
        <p class="hint">{isBusy ? 'Searching…' : 'Nothing found.'}</p>
      )}
    </Dialog>
  );
}

function useHits(projectId: string, text: string) {
  const [found, setFound] = useState<{ text: string; hits: Hit[]; error?: string }>();
  useEffect(() => {
    if (text === '') return;
    const own = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const path = withQuery('/console/api/v1/search', { q: text });
        const { results } = await api<{ results: SearchResult[] }>(path, undefined, own.signal);
        setFound({ text, hits: results.map((one) => hitOf(projectId, one)) });
      } catch (error) {
        if (!own.signal.aborted) setFound({ text, hits: [], error: sentenceOf(error) });
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [projectId, text]);
  const places = PLACES.filter(([, name]) => name.toLowerCase().includes(text.toLowerCase()));
  const pages = places.map(([list, name]): Hit => {
    return { href: pathOf(projectId, list), word: 'page', text: name };
  });
  const isCurrent = found?.text === text;
  return {
    hits: [...pages, ...(text !== '' && isCurrent ? found.hits : [])],
    error: text !== '' && isCurrent ? found.error : undefined,
    isBusy: text !== '' && !isCurrent,
  };
}

function hitOf(projectId: string, { kind, id, text, createdAt, webhookId }: SearchResult): Hit {
  const places: Record<string, string> = {
    SESSIONS: pathOf(projectId, 'sessions', id),
    INVOCATIONS: pathOf(projectId, 'runs', id),
    WEBHOOKS: pathOf(projectId, 'webhooks', id),
    DELIVERIES: withQuery(pathOf(projectId, 'webhooks', webhookId), { d: id }),
    FUNCTIONS: pathOf(projectId, 'functions', id),
    BUILDS: pathOf(projectId, 'builds', id),
    CONTEXTS: withQuery(pathOf(projectId, 'contexts'), { text: id }),
    DOWNLOADS: withQuery(pathOf(projectId, 'files'), { text: id }),
  };
  const href = places[kind] ?? pathOf(projectId, 'functions');
  const shown = text === undefined || text === '' ? id : text;
  return { href, word: WORDS[kind] ?? kind.toLowerCase(), text: shown, at: createdAt };
}
