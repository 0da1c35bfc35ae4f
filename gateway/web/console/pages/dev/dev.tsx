/**
 * The runs of `tabern dev`, and the chosen one as the console shows a run. Reads the server of the
 * command again while the page is looked at.
 */
import { useEffect, useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { now } from '../../data/clock.ts';
import { go, route } from '../../data/router.ts';
import type { RunDetail, RunStep } from '../../data/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Empty, Failure } from '../../parts/load.tsx';
import { RunState } from '../../parts/state.tsx';
import { Command, Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { LogLines } from '../../parts/values/log-lines.tsx';
import { ParamsForm } from '../functions/invoke-form.tsx';
import { Cause, Value } from '../runs/outcome.tsx';
import { Waterfall } from '../runs/waterfall.tsx';

const RUNS = '/console/api/runs';
const SHOWN = /^\/console\/runs\/([0-9a-f-]{36})$/;
/** The server is on this machine. */
const POLL_MS = 500;

/** Of runner/cli/dev/runs.ts. */
type Row = Pick<RunDetail, 'id' | 'status' | 'createdAt' | 'endedAt'> & { functionName: string };
type DevRun = Row &
  Pick<RunDetail, 'params' | 'results' | 'cause'> & {
    isResultLeftOut?: boolean;
    steps: RunStep[];
    logs: { message: string; timestamp: number; level: string }[];
    logsLeftOut: number;
  };
type Runs = { functions: string[]; runs: Row[] };

export function DevPage() {
  void route.value; // the address has changed
  const id = SHOWN.exec(location.pathname)?.[1];
  const { value, error } = usePolled<Runs>(RUNS, true);
  return (
    <div class="dev">
      <header class="dev-head">
        <h1>tabern dev</h1>
        {error !== undefined && (
          <span class="error" role="alert">
            {error}
          </span>
        )}
      </header>
      <nav class="dev-runs" aria-label="Runs">
        <Rows runs={value?.runs ?? []} chosen={id} />
      </nav>
      <main>
        {id !== undefined && <Shown key={id} id={id} />}
        {id === undefined && value !== undefined && <Start {...value} />}
      </main>
    </div>
  );
}

function Rows({ runs, chosen }: { runs: readonly Row[]; chosen: string | undefined }) {
  return (
    <ul>
      {runs.map(({ id, functionName, status, createdAt, endedAt }) => (
        <li key={id}>
          <a href={pathOf(id)} aria-current={id === chosen ? 'page' : undefined}>
            <RunState status={status} />
            <Foreign text={functionName} max={80} />
            <small>
              <Time at={createdAt} /> · <Length from={createdAt} to={endedAt} />
            </small>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** Without a chosen run. */
function Start({ functions, runs }: Runs) {
  if (runs.length > 0) return <p class="hint">Choose a run.</p>;
  const [name = 'name'] = functions;
  const url = `${location.origin}/v1/functions/${encodeURIComponent(name)}/invoke`;
  return (
    <Empty title="No function has run yet.">
      <Command text={`curl --json '{"params": {}}' ${url}`} />
      {functions.map((one) => (
        <RunForm key={one} name={one} params={{}} />
      ))}
    </Empty>
  );
}

function Shown({ id }: { id: string }) {
  const [isOver, setOver] = useState(false);
  const [isAgain, setAgain] = useState(false);
  const { value: run, error, again } = usePolled<DevRun>(`${RUNS}/${id}`, !isOver);
  const isEnded = run?.endedAt !== undefined;
  useEffect(() => setOver(isEnded), [isEnded]);
  if (run === undefined) {
    return error === undefined ? (
      <p class="hint">Reading…</p>
    ) : (
      <Failure error={error} again={again} />
    );
  }
  const timed = { ...run, startedAt: run.createdAt };
  return (
    <div class="run">
      <Header run={run} again={() => setAgain(true)} />
      <Waterfall
        run={timed}
        steps={run.steps}
        ticks={{ ticks: [], isCut: false }}
        now={isEnded ? 0 : now.value}
        hrefOf={() => undefined}
        seek={() => {}}
      />
      {run.cause !== undefined && <Cause cause={run.cause} />}
      <Values run={run} />
      <Log run={run} />
      {isAgain && (
        <Dialog label="Run again" close={() => setAgain(false)}>
          <h2>Run again</h2>
          <RunForm name={run.functionName} params={run.params ?? {}} done={() => setAgain(false)} />
        </Dialog>
      )}
    </div>
  );
}

function Header({ run, again }: { run: DevRun; again: () => void }) {
  return (
    <header class="session-head">
      <h2>
        <Foreign text={run.functionName} max={80} />
      </h2>
      <RunState status={run.status} />
      <Id value={run.id} />
      <span class="fact">
        started <Time at={run.createdAt} />
      </span>
      <span class="fact">
        length <Length from={run.createdAt} to={run.endedAt} />
      </span>
      <span class="space" />
      <button type="button" class="main" onClick={again}>
        Run again
      </button>
    </header>
  );
}

function Values({ run }: { run: DevRun }) {
  const left = 'The result is longer than 1 MiB: the page does not show it.';
  const none = run.endedAt === undefined ? 'It has not ended.' : 'No result.';
  return (
    <div class="two">
      <Value title="Params" value={run.params} none="No params." />
      <Value title="Result" value={run.results} none={run.isResultLeftOut ? left : none} />
    </div>
  );
}

function Log({ run }: { run: DevRun }) {
  const lines = run.logs.map((line, number) => ({ ...line, number }));
  return (
    <>
      <LogLines
        lines={lines}
        startedAt={Date.parse(run.createdAt)}
        isRunning={run.endedAt === undefined}
        none="The handler has written nothing."
      />
      {run.logsLeftOut > 0 && <p class="hint">{run.logsLeftOut} more lines are not kept.</p>}
    </>
  );
}

type FormProps = { name: string; params: unknown; done?: () => void };

/** Runs the function with these or edited params, and opens the page of the new run. */
function RunForm({ name, params, done }: FormProps) {
  const run = async (edited: object) => {
    const { id } = await api<{ id: string }>(RUNS, { functionName: name, params: edited });
    done?.();
    go(pathOf(id));
  };
  return <ParamsForm fields={undefined} initial={params as never} last={undefined} run={run} />;
}

function pathOf(id: string): string {
  return `/console/runs/${id}`;
}

/** GET of the path now, and again while it is to be followed and the page is looked at. */
function usePolled<T>(path: string, isFollowed: boolean) {
  const [state, setState] = useState<{ value?: T; error?: string }>({});
  const read = async (): Promise<void> => {
    try {
      setState({ value: await api<T>(path) });
    } catch (error) {
      setState((old) => ({ ...old, error: sentenceOf(error) }));
    }
  };
  useEffect(() => {
    void read();
    if (!isFollowed) return;
    const timer = setInterval(() => {
      if (!document.hidden) void read();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [path, isFollowed]);
  return { ...state, again: () => void read() };
}
