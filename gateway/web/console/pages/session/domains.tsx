/** The domains of the protocol: each can be hidden, which is a word of the filter. */
import { route, setQuery } from '../../data/router.ts';
import { Foreign } from '../../parts/text.tsx';

type Props = { domains: readonly [domain: string, count: number][] };

export function Domains({ domains }: Props) {
  const words = (route.value.query.get('q') ?? '').split(/\s+/).filter(Boolean);
  return (
    <fieldset class="domains">
      <legend class="hidden">Shown domains</legend>
      {domains.map(([domain, count]) => {
        const word = `-domain:${domain}`;
        const others = words.filter((one) => one.toLowerCase() !== word.toLowerCase());
        const isHidden = others.length < words.length;
        return (
          <button
            key={domain}
            type="button"
            class="plain"
            aria-pressed={!isHidden}
            title={isHidden ? `Show ${domain}` : `Hide ${domain}`}
            onClick={() => setQuery({ q: [...others, ...(isHidden ? [] : [word])].join(' ') })}
          >
            <Foreign text={domain} max={24} /> <span class="count">{count}</span>
          </button>
        );
      })}
    </fieldset>
  );
}
