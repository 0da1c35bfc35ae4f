/** API keys of the project; its limits and retention times, which only the operator changes. */
import type { ComponentChildren } from 'preact';
import { bytesText, lengthText } from '../../data/format.ts';
import type { Settings } from '../../data/types.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { Keys } from './keys.tsx';

const MIB = 1 << 20;
/** `unit`: of a limit in bytes. */
const LIMITS: readonly [name: string, word: string, unit?: number][] = [
  ['sessions', 'Sessions at once'],
  ['invocations', 'Runs at once'],
  ['queue', 'Runs and builds that wait'],
  ['contexts', 'Contexts'],
  ['contextMib', 'Content of contexts', MIB],
  ['downloadMib', 'Downloaded files', MIB],
  ['recordingMib', 'Recordings', MIB],
  ['uploadMib', 'Published archives and extensions', MIB],
  ['logMib', 'Session logs and results', MIB],
];
const KEPT: Record<string, string> = {
  session: 'Sessions',
  sessionLog: 'Protocol logs of sessions',
  recording: 'Recordings',
  download: 'Downloaded files',
  invocation: 'Runs',
  build: 'Builds, and versions that are no longer used',
  log: 'Logs of runs and builds',
  event: 'Events and deliveries',
};

export function SettingsPage() {
  const { value, error, again } = useLoad<Settings>('/console/api/v1/settings');
  return (
    <>
      <div class="head">
        <h1>Settings</h1>
      </div>
      <Keys />
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {value !== undefined && <Facts settings={value} />}
    </>
  );
}

function Facts({ settings }: { settings: Settings }) {
  const { limits, retention, webhooks } = settings;
  const { webhooksMax, ratePerSecond, retrySeconds, disableAfterHours } = webhooks;
  const delays = retrySeconds.map(spanText).join(', ');
  return (
    <div class="setting-groups">
      <Project settings={settings} />
      <Group title="Limits">
        {LIMITS.map(([name, word, unit]) => (
          <Fact key={name} name={word}>
            {limitText(limits[name] ?? 0, unit)}
          </Fact>
        ))}
        <Fact name="Extensions">{settings.extensionsMax}</Fact>
        <Fact name="API keys">{settings.keysMax}</Fact>
      </Group>
      <Group title="Kept for">
        {retention.map(({ kind, days }) => (
          <Fact key={kind} name={KEPT[kind] ?? kind}>
            {days === 1 ? '1 day' : `${days} days`}
          </Fact>
        ))}
      </Group>
      <Group title="Webhooks">
        <Fact name="Webhooks">{webhooksMax}</Fact>
        <Fact name="Attempts a second">{ratePerSecond} to each webhook</Fact>
        <Fact name="A failed delivery is tried again after">{delays}</Fact>
        <Fact name="Disabled when all attempts failed for">{disableAfterHours} h</Fact>
      </Group>
      <Whose />
    </div>
  );
}

function Project({ settings }: { settings: Settings }) {
  const { projectId, projectName, createdAt, defaultTimeout } = settings;
  return (
    <Group title="Project">
      <dt>Name</dt>
      <dd>
        <Foreign text={projectName} max={128} />
      </dd>
      <dt>Id</dt>
      <dd>
        <Id value={projectId} />
      </dd>
      <dt>Created</dt>
      <dd>
        <Time at={createdAt} />
      </dd>
      <dt>Timeout of sessions</dt>
      <dd>{spanText(defaultTimeout)}, unless a request sets another</dd>
    </Group>
  );
}

function Whose() {
  return (
    <p class="fact">
      The operator sets these. <code>tabern config</code> shows the settings of the service.
    </p>
  );
}

function limitText(value: number, unit: number | undefined): string {
  return unit === undefined ? value.toLocaleString('en') : bytesText(value * unit);
}

/** `30 min`, `2 h`. */
function spanText(seconds: number): string {
  return lengthText(seconds * 1_000, true).replace(/ 00 (?:s|min)$/, '');
}

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <dl class="settings">{children}</dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
