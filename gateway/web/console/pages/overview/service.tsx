/** The state of the service: browsers that are ready, Chrome, the disk. */
import { now } from '../../data/clock.ts';
import { bytesText, lengthText } from '../../data/format.ts';
import type { ServiceState } from '../../data/types.ts';
import { State, type StateName } from '../../parts/state.tsx';

const DAY_MS = 86_400_000;
/** Ours: Chrome has a release with security fixes every four weeks. */
const OLD_DAYS = 60;

type Fact = [state: StateName, name: string, text: string];

export function Service({ service }: { service: ServiceState }) {
  const facts = [starts(service), chrome(service), spares(service), disk(service)];
  return (
    <section class="service" aria-label="Service">
      <h2>Service</h2>
      <ul>
        {facts.map(([state, name, text]) => (
          <li key={name}>
            <State name={state} word={name} />
            <span>{text}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function starts({ hasRunner, browserFailing, browserStartedAt }: ServiceState): Fact {
  if (!hasRunner) return ['failed', 'Runner', 'none is connected: sessions and runs wait'];
  if (browserFailing) return ['failed', 'Chrome', 'does not start: see the log of the runner'];
  if (browserStartedAt === undefined) return ['waiting', 'Chrome', 'has not been started yet'];
  const ago = lengthText(now.value - Date.parse(browserStartedAt), true);
  return ['done', 'Chrome', `the last start worked, ${ago} ago`];
}

/** Products are like `HeadlessChrome/156.0.8078.79`. */
function chrome({ browsers }: ServiceState): Fact {
  const [oldest] = browsers;
  if (oldest === undefined) return ['waiting', 'Version', 'not reported yet'];
  const versions = new Set(browsers.map(({ product }) => product.replace(/^.*\//, '')));
  const text = [...versions].join(', ');
  if (oldest.builtAt === undefined) return ['done', 'Version', text];
  const days = Math.max(0, Math.floor((now.value - Date.parse(oldest.builtAt)) / DAY_MS));
  const age = `${text}, built ${days} days ago`;
  return days <= OLD_DAYS ? ['done', 'Version', age] : ['waiting', 'Version', `${age}: update it`];
}

function spares({ spares }: ServiceState): Fact {
  const text = spares === 1 ? '1 browser waits' : `${spares} browsers wait`;
  return [spares > 0 ? 'done' : 'waiting', 'Spares', `${text} for a session`];
}

function disk({ diskFreeBytes, diskLow }: ServiceState): Fact {
  const free = `${bytesText(diskFreeBytes)} free`;
  return diskLow
    ? ['failed', 'Disk', `${free}: almost full, no new work is taken`]
    : ['done', 'Disk', free];
}
