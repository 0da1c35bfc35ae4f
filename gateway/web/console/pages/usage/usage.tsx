/** What the project used: stored bytes against their limits, and each of the last 30 days. */
import type { ComponentChildren } from 'preact';
import { bytesText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { ProjectUsage, Sums, Usage, UsageOfFunction } from '../../data/types.ts';
import { save } from '../../parts/actions/save.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { Foreign } from '../../parts/text.tsx';
import { csvOf } from './csv.ts';
import { DayBars, dayText } from './day-bars.tsx';

const KINDS = ['SESSIONS', 'INVOCATIONS', 'CONTEXTS', 'DOWNLOADS'];
const STORED: readonly [name: string, word: string, text: (value: number) => string][] = [
  ['contexts', 'Contexts', numberText],
  ['contextBytes', 'Content of contexts', bytesText],
  ['downloadBytes', 'Downloaded files', bytesText],
  ['recordingBytes', 'Recordings', bytesText],
  ['uploadBytes', 'Published archives and extensions', bytesText],
  ['logBytes', 'Session logs and results', bytesText],
];
const COLUMNS = ['sessions', 'browser_minutes', 'proxy_bytes', 'runs', 'failed_runs'];
const CSV_TYPE = 'text/csv;charset=utf-8';

export function UsagePage() {
  const { projectId } = route.value;
  const usage = useLoad<Usage>('/console/api/v1/usage', KINDS);
  const stored = useLoad<ProjectUsage>(`/v1/projects/${projectId}/usage`, KINDS);
  const { value } = usage;
  return (
    <>
      <div class="head">
        <h1>Usage</h1>
        {value !== undefined && (
          <>
            <button type="button" onClick={() => saveDays(value)}>
              Days as CSV
            </button>
            <button type="button" onClick={() => saveFunctions(value)}>
              Functions as CSV
            </button>
          </>
        )}
      </div>
      {usage.error !== undefined && <Failure error={usage.error} again={usage.again} />}
      {stored.error !== undefined && <Failure error={stored.error} again={stored.again} />}
      {value === undefined && usage.error === undefined && <p class="hint">Reading…</p>}
      {value !== undefined && <Days usage={value} />}
      {stored.value !== undefined && <Stored usage={stored.value} />}
      {value !== undefined && <Functions functions={value.functions} />}
    </>
  );
}

function Days({ usage: { days, browserMinutes, proxyBytes } }: { usage: Usage }) {
  const bars = (text: (sums: Sums) => number) =>
    days.map(({ at, sums }) => ({ at, value: text(sums) }));
  return (
    <section aria-label={`The last ${days.length} days`}>
      <p class="fact">
        The last {days.length} days in UTC; sessions and runs count on the day of their end. Since
        the project was made: {numberText(browserMinutes)} browser minutes and{' '}
        {bytesText(proxyBytes)} through proxies, running sessions included.
      </p>
      <div class="days">
        <DayBars
          title="Browser minutes"
          bars={bars((sums) => sums.browserMinutes)}
          textOf={numberText}
        />
        <DayBars
          title="Runs"
          bars={bars((sums) => sums.runs)}
          parts={bars((sums) => sums.failedRuns)}
          partWord="failed"
          textOf={numberText}
        />
        <DayBars title="Sessions" bars={bars((sums) => sums.sessions)} textOf={numberText} />
        <DayBars
          title="Bytes through proxies"
          bars={bars((sums) => sums.proxyBytes)}
          textOf={bytesText}
        />
      </div>
    </section>
  );
}

function Stored({ usage: { storage } }: { usage: ProjectUsage }) {
  return (
    <section aria-label="Stored now">
      <h2>Stored now</h2>
      <Figures names={['Kind', 'Stored', 'Limit', 'Share']}>
        {STORED.map(([name, word, text]) => {
          const { used, limit } = storage[name] ?? { used: 0, limit: 0 };
          const share = limit === 0 ? 0 : Math.min(1, used / limit);
          return (
            <tr key={name}>
              <td class="wide">{word}</td>
              <td>{text(used)}</td>
              <td>{text(limit)}</td>
              <td>
                <meter aria-label={word} value={share} high={0.9} optimum={0} />
                <span class="share">{shareText(share)}</span>
              </td>
            </tr>
          );
        })}
      </Figures>
    </section>
  );
}

function Functions({ functions }: { functions: readonly UsageOfFunction[] }) {
  const { projectId } = route.value;
  if (functions.length === 0) return null;
  return (
    <section aria-label="By function">
      <h2>By function, in these days</h2>
      <Figures names={['Function', 'Browser minutes', 'Runs', 'Failed', 'Through proxies']}>
        {functions.map(({ id, name, sums }) => (
          <tr key={id}>
            <td class="wide">
              {name === undefined ? (
                <span class="none">a deleted function ({id.slice(-8)})</span>
              ) : (
                <a href={`${pathOf(projectId, 'runs')}?functionId=${id}`}>
                  <Foreign text={name} max={100} />
                </a>
              )}
            </td>
            <td>{numberText(sums.browserMinutes)}</td>
            <td>{numberText(sums.runs)}</td>
            <td>{numberText(sums.failedRuns)}</td>
            <td>{bytesText(sums.proxyBytes)}</td>
          </tr>
        ))}
      </Figures>
    </section>
  );
}

function Figures({ names, children }: { names: string[]; children: ComponentChildren }) {
  const [first = '', ...others] = names;
  return (
    <div class="scroll">
      <table class="sums">
        <thead>
          <tr>
            <th class="wide" scope="col">
              {first}
            </th>
            {others.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function numberText(value: number): string {
  return value.toLocaleString('en');
}

function shareText(share: number): string {
  if (share > 0 && share < 0.001) return '< 0.1 %';
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

function saveDays({ days }: Usage): void {
  const rows = days.map(({ at, sums }) => [dayText(at), ...cellsOf(sums)]);
  save(new Blob([csvOf([['day', ...COLUMNS], ...rows])], { type: CSV_TYPE }), 'usage-days.csv');
}

function saveFunctions({ functions }: Usage): void {
  const rows = functions.map(({ id, name = '', sums }) => [id, name, ...cellsOf(sums)]);
  const text = csvOf([['function_id', 'function_name', ...COLUMNS], ...rows]);
  save(new Blob([text], { type: CSV_TYPE }), 'usage-functions.csv');
}

function cellsOf({ sessions, browserMinutes, proxyBytes, runs, failedRuns }: Sums): number[] {
  return [sessions, browserMinutes, proxyBytes, runs, failedRuns];
}
