/** Two runs side by side: what differs in their course, params and results. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { withQuery } from '../../data/api.ts';
import { escaped, lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route, setQuery } from '../../data/router.ts';
import type { Run, RunDetail, RunStep } from '../../data/types.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { RunState } from '../../parts/state.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { differencesOf } from '../functions/model/difference.ts';
import { barsOf } from './bars.ts';

const FEW = '20';
/** In the address: the run before this one. */
const LAST = 'last';

/** `other`: the id of a run, or `last`. */
export function Compare({ run, other }: { run: RunDetail; other: string }) {
  const path = withQuery('/console/api/v1/invocations', { functionId: run.functionId, limit: FEW });
  const { value, error, again } = useLoad<{ invocations: Run[] }>(path);
  const others = (value?.invocations ?? []).filter(({ id }) => id !== run.id);
  const before = others.find(({ id }) => id < run.id) ?? others[0];
  const id = other === LAST ? before?.id : other;
  return (
    <section class="compare" aria-label="Compare">
      <div class="head">
        <h2>Compare with</h2>
        <Choice id={id ?? ''} others={others} />
        <span class="space" />
        <button type="button" class="plain" onClick={() => setQuery({ with: '' }, true)}>
          Close
        </button>
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value !== undefined && id === undefined && (
        <p class="hint">The function has no other run.</p>
      )}
      {id !== undefined && <Both key={id} run={run} id={id} />}
    </section>
  );
}

function Choice({ id, others }: { id: string; others: readonly Run[] }) {
  const isListed = others.some((one) => one.id === id);
  return (
    <>
      <select
        aria-label="A recent run"
        value={isListed ? id : ''}
        onChange={({ currentTarget }) => setQuery({ with: currentTarget.value }, true)}
      >
        {!isListed && <option value="">a recent run</option>}
        {others.map((one) => (
          <option key={one.id} value={one.id}>
            {one.createdAt.slice(0, 19).replace('T', ' ')} {one.status.toLowerCase()}{' '}
            {one.id.slice(-6)}
          </option>
        ))}
      </select>
      <input
        aria-label="The id of a run"
        placeholder="or its id"
        value={isListed ? '' : id}
        spellcheck={false}
        onChange={({ currentTarget }) => setQuery({ with: currentTarget.value.trim() }, true)}
      />
    </>
  );
}

function Both({ run, id }: { run: RunDetail; id: string }) {
  const path = `/v1/functions/invocations/${encodeURIComponent(id)}`;
  const { value: other, error, again } = useLoad<RunDetail>(path);
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (other === undefined) return <p class="hint">Reading…</p>;
  return (
    <>
      <Courses run={run} other={other} />
      <Differences title="Params" before={other.params} after={run.params} />
      <Differences title="Result" before={other.results} after={run.results} />
      {(run.cause !== undefined || other.cause !== undefined) && (
        <Differences title="Cause" before={plainCause(other)} after={plainCause(run)} />
      )}
    </>
  );
}

/** Without the stack: its lines move with each build. */
function plainCause({ cause }: RunDetail) {
  return cause && { code: cause.code, name: cause.name, message: cause.message };
}

function Courses({ run, other }: { run: RunDetail; other: RunDetail }) {
  const { projectId } = route.value;
  const [own, theirs] = [useLengths(run), useLengths(other)];
  const names = [...new Set([...theirs.keys(), ...own.keys()])];
  return (
    <table aria-label="Courses">
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col">
            <a href={pathOf(projectId, 'runs', other.id)}>the other run</a> <Id value={other.id} />
          </th>
          <th scope="col">this run</th>
          <th scope="col">Difference</th>
        </tr>
      </thead>
      <tbody>
        <FactRow
          name="state"
          sides={[
            <RunState key="a" status={other.status} />,
            <RunState key="b" status={run.status} />,
          ]}
        />
        <FactRow
          name="accepted"
          sides={[<Time key="a" at={other.createdAt} />, <Time key="b" at={run.createdAt} />]}
        />
        <FactRow
          name="version"
          sides={[<Id key="a" value={other.versionId} />, <Id key="b" value={run.versionId} />]}
          note={run.versionId === other.versionId ? 'the same' : 'another one'}
        />
        {names.map((name) => (
          <FactRow
            key={name}
            name={name}
            sides={[lengthOr(theirs.get(name)), lengthOr(own.get(name))]}
            note={changeOf(theirs.get(name), own.get(name))}
          />
        ))}
      </tbody>
    </table>
  );
}

type FactProps = { name: string; sides: [ComponentChildren, ComponentChildren]; note?: string };

function FactRow({ name, sides: [before, after], note }: FactProps) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{before}</td>
      <td>{after}</td>
      <td>{note}</td>
    </tr>
  );
}

/** How long each step took. */
function useLengths(run: RunDetail): ReadonlyMap<string, number> {
  const path = run.endedAt === undefined ? '' : `/console/api/v1/invocations/${run.id}/steps`;
  const { value } = useLoad<{ steps: RunStep[] }>(path);
  if (run.endedAt === undefined) return new Map();
  return new Map(barsOf(run, value?.steps ?? [], 0).map(({ name, from, to }) => [name, to - from]));
}

type Values = { title: string; before: unknown; after: unknown };

function Differences({ title, before, after }: Values) {
  const { rows, isCut } = useMemo(() => differencesOf(before, after), [before, after]);
  return (
    <section aria-label={`${title}: differences`}>
      <h2>{title}</h2>
      {rows.length === 0 && !isCut && <p class="hint">The same.</p>}
      {rows.length > 0 && (
        <table aria-label={`Differences of ${title.toLowerCase()}`}>
          <thead>
            <tr>
              <th scope="col">Path</th>
              <th scope="col">the other run</th>
              <th scope="col">this run</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.path}>
                <th scope="row">
                  <Foreign text={row.path} max={300} />
                </th>
                <td>
                  <Side text={row.before} />
                </td>
                <td>
                  <Side text={row.after} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {isCut && <p class="hint">The values are large: only their first parts were compared.</p>}
    </section>
  );
}

function Side({ text }: { text: string | undefined }) {
  if (text === undefined) return <span class="none">not there</span>;
  return <bdi class="foreign">{escaped(text)}</bdi>;
}

function lengthOr(ms: number | undefined) {
  return ms === undefined ? <span class="none">–</span> : lengthText(ms);
}

function changeOf(before: number | undefined, after: number | undefined): string {
  if (before === undefined || after === undefined) return '';
  const change = after - before;
  return `${change < 0 ? '−' : '+'}${lengthText(Math.abs(change))}`;
}
