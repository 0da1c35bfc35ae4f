/** The schedules of a function: when it runs next, what became of the last time, and a new one. */
import { useState } from 'preact/hooks';
import { api, send, withQuery } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { parsedParams } from './model/schema-form.ts';

/** All that a project may have. */
const LIMIT = '100';

/** GET /v1/functions/{id}/schedules. */
type Schedule = {
  id: string;
  cron: string;
  timeZone: string;
  enabled: boolean;
  nextRunAt?: string;
  lastRunAt?: string;
  lastInvocationId?: string;
  lastOutcome?: { status: string; reason?: string; message?: string; scheduledFor: string };
};

type Asked = 'new' | { remove: Schedule };

export function Schedules({ functionId }: { functionId: string }) {
  const path = `/v1/functions/${functionId}/schedules`;
  const list = withQuery(path, { limit: LIMIT });
  const { value, error, again } = useLoad<{ data: Schedule[] }>(list, ['INVOCATIONS']);
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    again();
  };
  const toggle = async ({ id, enabled }: Schedule) => {
    await send('PATCH', `/v1/functions/schedules/${id}`, { enabled: !enabled });
    announce(enabled ? 'The schedule is paused.' : 'The schedule continues with its next time.');
    again();
  };
  const remove = (schedule: Schedule) => setAsked({ remove: schedule });
  return (
    <section aria-label="Schedules">
      <div class="head">
        <h2>Schedules</h2>
        <button type="button" onClick={() => setAsked('new')}>
          New schedule
        </button>
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value?.data.length === 0 && <p class="hint">It runs at no times.</p>}
      {value !== undefined && value.data.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Rows of schedules">
          <Table
            label="Schedules"
            rows={value.data}
            columns={columnsOf({ toggle, remove })}
            keyOf={({ id }) => id}
            hrefOf={() => undefined}
          />
        </section>
      )}
      {asked === 'new' && <NewSchedule path={path} close={close} />}
      {typeof asked === 'object' && <Remove schedule={asked.remove} close={close} />}
    </section>
  );
}

type Acts = { toggle(schedule: Schedule): Promise<void>; remove(schedule: Schedule): void };

function columnsOf({ toggle, remove }: Acts): Column<Schedule>[] {
  return [
    { name: 'Schedule', cell: ({ id }) => <Id value={id} /> },
    {
      name: 'Times',
      cell: ({ cron, timeZone }) => <Foreign text={`${cron} ${timeZone}`} max={120} />,
    },
    { name: 'Next run', cell: ({ nextRunAt, enabled }) => <Next at={nextRunAt} on={enabled} /> },
    { name: 'Last run', cell: (schedule) => <Last schedule={schedule} /> },
    { name: 'Last time', kind: 'wide', cell: (schedule) => <Outcome schedule={schedule} /> },
    {
      name: 'Change',
      cell: (schedule) => (
        <>
          <button type="button" onClick={() => void toggle(schedule)}>
            {schedule.enabled ? 'Pause' : 'Continue'}
          </button>{' '}
          <button type="button" onClick={() => remove(schedule)}>
            Delete
          </button>
        </>
      ),
    },
  ];
}

function Next({ at, on }: { at: string | undefined; on: boolean }) {
  if (!on) return <span class="none">paused</span>;
  return at === undefined ? <span class="none">–</span> : <Time at={at} />;
}

function Last({ schedule: { lastRunAt, lastInvocationId } }: { schedule: Schedule }) {
  if (lastRunAt === undefined || lastInvocationId === undefined) {
    return <span class="none">–</span>;
  }
  return (
    <a href={pathOf(route.value.projectId, 'runs', lastInvocationId)}>
      <Time at={lastRunAt} />
    </a>
  );
}

function Outcome({ schedule: { lastOutcome } }: { schedule: Schedule }) {
  if (lastOutcome === undefined) return <span class="none">–</span>;
  const { status, message, scheduledFor } = lastOutcome;
  return (
    <>
      <Time at={scheduledFor} /> {status}
      {message !== undefined && (
        <>
          : <Foreign text={message} max={200} />
        </>
      )}
    </>
  );
}

function Remove({ schedule: { id, cron }, close }: { schedule: Schedule; close(): void }) {
  return (
    <Confirm
      title="Delete the schedule"
      action="Delete"
      isDangerous
      run={async () => send('DELETE', `/v1/functions/schedules/${id}`)}
      close={close}
    >
      <p>
        <Foreign text={cron} max={120} /> starts no run any more. Its runs are kept.
      </p>
    </Confirm>
  );
}

type Fields = { cron: string; timeZone: string; overlap: string; catchUp: string; params: string };

function NewSchedule({ path, close }: { path: string; close(): void }) {
  const [fields, setFields] = useState<Fields>({
    cron: '',
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    overlap: 'skip',
    catchUp: 'none',
    params: '{}',
  });
  const set = (change: Partial<Fields>) => setFields((old) => Object.assign({}, old, change));
  const run = async () => {
    const read = parsedParams(fields.params);
    if ('problem' in read) throw new Error(read.problem.text);
    await api(path, { ...fields, params: read.params });
    announce('The schedule is created.');
  };
  const isReady = fields.cron.trim() !== '' && fields.timeZone.trim() !== '';
  return (
    <Confirm title="New schedule" action="Create" isReady={isReady} run={run} close={close}>
      <Text label="Times, as a cron text" value={fields.cron} set={(cron) => set({ cron })} />
      <p class="none">
        Minute, hour, day of month, month, day of week: 0 9 * * MON-FRI is each working day at nine.
      </p>
      <Text label="Time zone" value={fields.timeZone} set={(timeZone) => set({ timeZone })} />
      <Check
        label="Also start while the last run has not ended"
        isOn={fields.overlap === 'allow'}
        set={(isOn) => set({ overlap: isOn ? 'allow' : 'skip' })}
      />
      <Check
        label="After a downtime of the service run once for the newest missed time"
        isOn={fields.catchUp === 'last'}
        set={(isOn) => set({ catchUp: isOn ? 'last' : 'none' })}
      />
      <label>
        Params, as a JSON object
        <textarea
          rows={4}
          spellcheck={false}
          value={fields.params}
          onInput={({ currentTarget }) => set({ params: currentTarget.value })}
        />
      </label>
    </Confirm>
  );
}

function Text({ label, value, set }: { label: string; value: string; set(text: string): void }) {
  return (
    <label>
      {label}
      <input
        type="text"
        maxLength={256}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </label>
  );
}

function Check({ label, isOn, set }: { label: string; isOn: boolean; set(isOn: boolean): void }) {
  return (
    <label>
      <input
        type="checkbox"
        checked={isOn}
        onChange={({ currentTarget }) => set(currentTarget.checked)}
      />{' '}
      {label}
    </label>
  );
}
