/** Programs to copy, one tab each. */
import { useRef, useState } from 'preact/hooks';
import { baseUrl } from '../../data/api.ts';
import { route } from '../../data/router.ts';
import { Command } from '../../parts/text.tsx';
import { snippetsOf } from './snippets.ts';

export function Quickstart() {
  const [chosen, setChosen] = useState(0);
  const tabs = useRef<HTMLDivElement>(null);
  const snippets = snippetsOf({ baseUrl: baseUrl(), projectId: route.value.projectId });
  const move = (step: number) => {
    const next = (chosen + step + snippets.length) % snippets.length;
    setChosen(next);
    tabs.current?.querySelectorAll('button')[next]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowRight') move(1);
    else if (event.key === 'ArrowLeft') move(-1);
  };
  return (
    <section class="quickstart" aria-label="Quickstart">
      <h2>From your own code</h2>
      <p class="hint">
        Export an API key of this project as <code>TABERN_API_KEY</code> before.
      </p>
      <div ref={tabs} role="tablist" aria-label="Language" onKeyDown={onKeyDown}>
        {snippets.map(({ title }, index) => (
          <button
            key={title}
            type="button"
            role="tab"
            id={`snippet-${index}`}
            aria-selected={index === chosen}
            aria-controls="snippet"
            tabIndex={index === chosen ? 0 : -1}
            onClick={() => setChosen(index)}
          >
            {title}
          </button>
        ))}
      </div>
      <div id="snippet" role="tabpanel" aria-labelledby={`snippet-${chosen}`}>
        {snippets[chosen]?.blocks.map(({ name, text }) => (
          <figure key={text} data-name={name}>
            {name !== undefined && (
              <figcaption>
                <code>{name}</code>
              </figcaption>
            )}
            <Command text={text} />
          </figure>
        ))}
      </div>
    </section>
  );
}
