/** The functions of the project, with what their runs of the last 24 hours were like. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, sentenceOf, withQuery } from '../../data/api.ts';
import { onChange } from '../../data/changes.ts';
import { lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { Filters, Type } from '../../parts/filters.tsx';
import { FirstFunction } from '../../parts/first.tsx';
import { Empty, Failure, useLoad } from '../../parts/load.tsx';
import { Shape } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Time } from '../../parts/text.tsx';
import type { FunctionItem, FunctionPage } from './model/types.ts';

const PATH = '/console/api/v1/functions';
/** Ours: figures of a day need not follow each run. */
const FIGURES_MS = 10_000;
const VERSIONS_COUNTED_MAX = 100;

export function FunctionsPage() {
  const { projectId, query } = route.value;
  const { value, error, again } = useFunctions();
  const { rows: more, hasMore, read, failed } = useMore(value);
  const text = (query.get('text') ?? '').toLowerCase();
  const all = [...(value?.functions ?? []), ...more];
  const rows = all.filter(({ id, name }) => id.includes(text) || name.toLowerCase().includes(text));
  const isEmpty = value !== undefined && all.length === 0;
  return (
    <>
      <div class="head">
        <h1>Functions</h1>
        <span class="space" />
        <a href={pathOf(projectId, 'builds')}>Builds</a>
        <a class="button" href={pathOf(projectId, 'publish')}>
          Publish
        </a>
      </div>
      <Filters names={['text']}>
        <Type name="text" label="Text" placeholder="name or id" />
      </Filters>
      {error !== undefined && <Failure error={error} again={again} />}
      {failed !== undefined && <Failure error={failed} again={read} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {isEmpty && <FirstFunction />}
      {all.length > 0 && rows.length === 0 && <Empty title="Nothing matches these filters." />}
      {rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Rows">
          <Table
            label="Functions"
            rows={rows}
            columns={columnsOf(projectId)}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => pathOf(projectId, 'functions', id)}
          />
        </section>
      )}
      {hasMore && (
        <button type="button" class="more" onClick={read}>
          Show more
        </button>
      )}
      {!isEmpty && value !== undefined && <Covered page={value} />}
    </>
  );
}

/** What the figures are about. */
function Covered({ page: { counted, countedFrom } }: { page: FunctionPage }) {
  return (
    <p class="hint">
      {countedFrom === undefined ? (
        `Runs, lengths and failures: all ${counted} runs of the last 24 hours.`
      ) : (
        <>
          Runs, lengths and failures: of the last {counted.toLocaleString('en')} runs of the
          project, since <Time at={countedFrom} />.
        </>
      )}
    </p>
  );
}

function columnsOf(projectId: string): Column<FunctionItem>[] {
  return [
    { name: 'Name', kind: 'wide', cell: ({ name }) => <Foreign text={name} max={80} /> },
    { name: 'Published', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
    {
      name: 'Versions',
      kind: 'late',
      cell: ({ versions }) =>
        versions > VERSIONS_COUNTED_MAX ? `> ${VERSIONS_COUNTED_MAX}` : versions,
    },
    {
      name: 'Runs in 24 h',
      cell: ({ id, hours }) => (
        <a class="runs-24h" href={withQuery(pathOf(projectId, 'runs'), { functionId: id })}>
          <Spark hours={hours} />
          {sum(hours)}
        </a>
      ),
    },
    { name: 'Median', cell: ({ p50Ms }) => lengthOr(p50Ms) },
    { name: 'p95', cell: ({ p95Ms }) => lengthOr(p95Ms) },
    { name: 'Failed', cell: (one) => <Failed item={one} /> },
    {
      name: 'Build',
      kind: 'late',
      cell: ({ buildId }) =>
        buildId !== undefined && <a href={pathOf(projectId, 'builds', buildId)}>newest build</a>,
    },
  ];
}

function Failed({ item: { ended, failed } }: { item: FunctionItem }) {
  if (ended === 0) return <span class="none">–</span>;
  if (failed === 0) return <span>0 %</span>;
  const part = (100 * failed) / ended;
  return (
    <span class="state failed" title={`${failed} of ${ended}`}>
      <Shape name="failed" />
      {part < 1 ? '< 1' : Math.round(part)} %
    </span>
  );
}

/** 24 bars of an hour each. The number beside it says the same. */
function Spark({ hours }: { hours: readonly number[] }) {
  const max = Math.max(1, ...hours);
  return (
    <svg class="spark" viewBox="0 0 96 18" width="96" height="18" aria-hidden="true">
      {hours.map((count, hour) => {
        const height = count === 0 ? 1 : Math.max(2, (16 * count) / max);
        return (
          <rect
            key={hour}
            class={count === 0 ? 'base' : 'running'}
            x={hour * 4}
            y={18 - height}
            width={3}
            height={height}
          />
        );
      })}
    </svg>
  );
}

/** Read again when a function is published, and, more rarely, when runs change. */
function useFunctions() {
  const loaded = useLoad<FunctionPage>(PATH, ['FUNCTIONS', 'BUILDS']);
  const { again } = loaded;
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = onChange(['INVOCATIONS'], () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (!document.hidden) latest.current();
      }, FIGURES_MS);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, []);
  return loaded;
}

/** The pages behind the first. */
function useMore(first: FunctionPage | undefined) {
  const [pages, setPages] = useState<FunctionPage[]>([]);
  const [failed, setFailed] = useState<string>();
  const cursor = (pages.at(-1) ?? first)?.nextCursor;
  const read = async () => {
    try {
      const page = await api<FunctionPage>(withQuery(PATH, { cursor }));
      setFailed(undefined);
      setPages((old) => [...old, page]);
    } catch (error) {
      setFailed(sentenceOf(error));
    }
  };
  const ids = new Set(first?.functions.map(({ id }) => id));
  const rows = pages.flatMap(({ functions }) => functions).filter(({ id }) => !ids.has(id));
  return { rows, hasMore: cursor !== undefined, read: () => void read(), failed };
}

function lengthOr(ms: number | undefined) {
  return ms === undefined ? <span class="none">–</span> : lengthText(ms);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
