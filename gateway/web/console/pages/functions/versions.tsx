/** The versions of a function. Runs use the newest one, unless a run names another. */
import { withQuery } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route, setQuery } from '../../data/router.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import type { Version } from './model/types.ts';

const LIMIT = '50';
type Page = { versions: Version[]; nextCursor?: string };

export function Versions({ functionId }: { functionId: string }) {
  const path = withQuery(`/console/api/v1/functions/${functionId}/versions`, { limit: LIMIT });
  const { value, error, again } = useLoad<Page>(path, ['FUNCTIONS', 'BUILDS']);
  const newest = value?.versions[0]?.id;
  return (
    <section aria-label="Versions">
      <h2>Versions</h2>
      {error !== undefined && <Failure error={error} again={again} />}
      {value !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Rows of versions">
          <Table
            label="Versions"
            rows={value.versions}
            columns={columnsOf(newest)}
            keyOf={({ id }) => id}
            hrefOf={() => undefined}
          />
        </section>
      )}
      {value?.nextCursor !== undefined && (
        <p class="hint">Older versions: tabern functions versions {functionId}</p>
      )}
    </section>
  );
}

function columnsOf(newest: string | undefined): Column<Version>[] {
  const { projectId } = route.value;
  return [
    { name: 'Version', cell: ({ id }) => <Id value={id} /> },
    { name: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: 'Entry',
      kind: 'wide',
      cell: ({ buildId, entrypoint }) => (
        <a href={pathOf(projectId, 'builds', buildId)}>
          <Foreign text={entrypoint} max={80} />
        </a>
      ),
    },
    { name: 'Archive', kind: 'late', cell: ({ archiveBytes }) => size(archiveBytes) },
    { name: 'Bundle', kind: 'late', cell: ({ bundleBytes }) => size(bundleBytes) },
    {
      name: 'Bundle SHA-256',
      kind: 'late',
      cell: ({ bundleSha256 }) => bundleSha256 !== undefined && <Id value={bundleSha256} />,
    },
    { name: 'Schema', kind: 'late', cell: ({ hasSchema }) => (hasSchema ? 'yes' : 'no') },
    {
      name: 'Run',
      cell: ({ id }) =>
        id === newest ? (
          'by default'
        ) : (
          <button type="button" onClick={() => runThis(id)}>
            Run this one
          </button>
        ),
    },
  ];
}

function runThis(version: string): void {
  setQuery({ version }, true);
  scrollTo(0, 0);
}

function size(bytes: number | undefined) {
  return bytes === undefined ? <span class="none">–</span> : bytesText(bytes);
}
