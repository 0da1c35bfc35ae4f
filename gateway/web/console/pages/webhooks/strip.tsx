/** How 14 days of a webhook went: a shape and a colour for each, and words for all. */
import { route, setQuery } from '../../data/router.ts';
import {
  backlogText,
  type Day,
  daySentence,
  dayState,
  daysSentence,
  dayText,
  type Health,
  p95Text,
} from '../../data/webhooks.ts';
import { Shape } from '../../parts/state.tsx';
import { Time } from '../../parts/text.tsx';

/** Small, for a list: one picture with one description. */
export function Strip({ days }: { days: readonly Day[] }) {
  const sentence = daysSentence(days);
  return (
    <span class="strip" role="img" aria-label={sentence} title={sentence}>
      {days.map((day) => (
        <Mark key={day.at} day={day} />
      ))}
    </span>
  );
}

/** Large: each day is a button that shows the events of that day. */
export function Days({ health }: { health: Health }) {
  const chosen = route.value.query.get('day');
  return (
    <section class="health" aria-label="Health">
      <ol ref={showLast}>
        {health.days.map((day) => {
          const name = day.at.slice(0, 10);
          const isChosen = name === chosen;
          return (
            <li key={name}>
              <button
                type="button"
                class="plain"
                aria-pressed={isChosen}
                aria-label={daySentence(day)}
                title={daySentence(day)}
                onClick={() => setQuery({ day: isChosen ? undefined : name }, true)}
              >
                <Mark day={day} />
                <span>{dayText(day.at)}</span>
                <Counts day={day} />
              </button>
            </li>
          );
        })}
      </ol>
      <Figures health={health} />
    </section>
  );
}

/** On a narrow screen the list scrolls: today is in view first. */
function showLast(list: HTMLOListElement | null): void {
  if (list !== null) list.scrollLeft = list.scrollWidth;
}

function Mark({ day }: { day: Day }) {
  const { name } = dayState(day);
  return <span class={`mark ${name}`}>{name !== 'none' && <Shape name={name} />}</span>;
}

/** The delivered ones, and below them what went wrong. */
function Counts({ day: { delivered, failed, lost } }: { day: Day }) {
  return (
    <>
      <span class="delivered">{delivered + failed + lost === 0 ? '–' : delivered}</span>
      {failed > 0 && <span>{failed} failed</span>}
      {lost > 0 && <span>{lost} lost</span>}
    </>
  );
}

function Figures({ health }: { health: Health }) {
  return (
    <>
      <dl class="webhook-facts">
        <div>
          <dt>95 % answered within</dt>
          <dd>{p95Text(health)}</dd>
        </div>
        <div>
          <dt>Waiting</dt>
          <dd>{backlogText(health)}</dd>
        </div>
      </dl>
      <p class="none">
        Days in UTC: events delivered, attempts that failed, deliveries lost (given up, or skipped
        while disabled). {health.answers} answers since{' '}
        <Time at={health.countedFrom ?? health.days[0]?.at} />, without tests.
      </p>
    </>
  );
}
