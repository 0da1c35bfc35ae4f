/** Filters of a list. Their state is the query of the address. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { now } from '../data/clock.ts';
import { route, setQuery } from '../data/router.ts';

const TYPING_MS = 250;

export function Filters({ names, children }: { names: string[]; children: ComponentChildren }) {
  const isSet = names.some((name) => route.value.query.has(name));
  const none = Object.fromEntries(names.map((name) => [name, undefined]));
  return (
    <search class="filters">
      {children}
      {isSet && (
        <button type="button" class="plain" onClick={() => setQuery(none, true)}>
          Clear
        </button>
      )}
    </search>
  );
}

type Choice = { name: string; label: string; options: readonly [value: string, word: string][] };

export function Choose({ name, label, options }: Choice) {
  return (
    <label>
      <span>{label}</span>
      <select
        value={route.value.query.get(name) ?? ''}
        onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value }, true)}
      >
        {options.map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}

type Words = { name: string; label: string; placeholder: string; id?: string };

export function Type({ name, label, placeholder, id }: Words) {
  const box = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const value = route.value.query.get(name) ?? '';
  useEffect(() => {
    const element = box.current;
    if (element && document.activeElement !== element) element.value = value;
  }, [value]);
  return (
    <label>
      <span>{label}</span>
      <input
        ref={box}
        id={id}
        type="search"
        maxLength={128}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        defaultValue={value}
        onInput={({ currentTarget }) => {
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setQuery({ [name]: currentTarget.value }), TYPING_MS);
        }}
      />
    </label>
  );
}

/** The ranges of time that lists offer; `since` in the address. */
export const SINCE: readonly [string, string][] = [
  ['', 'any time'],
  ['1h', 'last hour'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
];
const SINCE_MS: Record<string, number> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 };

/** `from` of a request: the range starts when it is chosen, so that a list keeps its rows. */
export function useFrom(): string | undefined {
  const since = route.value.query.get('since');
  const isClockSet = now.value > 0;
  return useMemo(() => (isClockSet ? fromOf(since, now.peek()) : undefined), [since, isClockSet]);
}

function fromOf(since: string | null, nowMs: number): string | undefined {
  const length = since === null ? undefined : SINCE_MS[since];
  return length === undefined ? undefined : new Date(nowMs - length).toISOString();
}
