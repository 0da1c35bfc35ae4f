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
    <section class="days" aria-label="Health">
      <ol>
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
                <span class="count">{countText(day)}</span>
              </button>
            </li>
          );
        })}
      </ol>
      <Figures health={health} />
    </section>
  );
}

function Mark({ day }: { day: Day }) {
  const { name } = dayState(day);
  return <span class={`mark ${name}`}>{name !== 'none' && <Shape name={name} />}</span>;
}

/** The delivered ones, and behind them what went wrong. */
function countText({ delivered, failed, lost }: Day): string {
  if (delivered + failed + lost === 0) return '–';
  return failed + lost === 0 ? String(delivered) : `${delivered} / ${failed + lost}`;
}

function Figures({ health }: { health: Health }) {
  return (
    <>
      <dl class="facts">
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
        Days in UTC; delivered / failed attempts and lost deliveries. {health.answers} answers since{' '}
        <Time at={health.countedFrom ?? health.days[0]?.at} />, without tests.
      </p>
    </>
  );
}
