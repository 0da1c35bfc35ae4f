/** The filters of the list of sessions. Their state is the query of the address. */

import { plain } from '../../data/format.ts';
import { route } from '../../data/router.ts';
import type { Fn } from '../../data/types.ts';
import { Choose, Filters, SINCE, Type, useFrom } from '../../parts/filters.tsx';
import { useLoad } from '../../parts/load.tsx';

/** In the order of the address; `q` is a whole condition, as the API takes it. */
export const FILTERS = [
  ...['status', 'since', 'text', 'label', 'key', 'value', 'functionId', 'contextId', 'region', 'q'],
];
const STATUSES: readonly [string, string][] = [
  ['', 'any'],
  ['RUNNING', 'running'],
  ['PENDING', 'starting'],
  ['COMPLETED', 'ended'],
  ['TIMED_OUT', 'timed out'],
  ['ERROR', 'failed'],
];
const REGIONS: readonly [string, string][] = [
  ['', 'any'],
  ...['us-west-2', 'us-east-1', 'eu-central-1', 'ap-southeast-1'].map((one): [string, string] => [
    one,
    one,
  ]),
];

/** The query of the request. */
export function useSessionQuery(): Record<string, string | undefined> {
  const from = useFrom();
  const { query } = route.value;
  const of = (name: string) => query.get(name) ?? undefined;
  return {
    status: of('status'),
    text: of('text'),
    label: of('label'),
    q: of('q') ?? conditionOf(of('key'), of('value')),
    functionId: of('functionId'),
    contextId: of('contextId'),
    region: of('region'),
    from,
  };
}

/** `user_metadata['team']:'search'`; undefined until both are given. */
function conditionOf(key: string | undefined, value: string | undefined): string | undefined {
  if (key === undefined || value === undefined) return undefined;
  const [name, text] = [key, value].map((one) => one.replace(/['\\]/g, '\\$&'));
  return `user_metadata['${name}']:'${text}'`;
}

export function SessionFilters() {
  const { value } = useLoad<{ data: Fn[] }>('/v1/functions', ['FUNCTIONS']);
  const functions = (value?.data ?? []).map(({ id, name }): [string, string] => [
    id,
    plain(name, 40),
  ]);
  return (
    <div class="session-filters">
      <Filters names={FILTERS}>
        <Choose name="status" label="Status" options={STATUSES} />
        <Choose name="since" label="Started" options={SINCE} />
        <Type name="text" label="Text" placeholder="id, label, name" />
        <Type name="label" label="Label" placeholder="whole name" />
        <Type name="key" label="Metadata key" placeholder="team" />
        <Type name="value" label="Metadata value" placeholder="equals" />
        {functions.length > 0 && (
          <Choose name="functionId" label="Function" options={[['', 'any'], ...functions]} />
        )}
        <Choose name="region" label="Region" options={REGIONS} />
        <Type name="contextId" label="Context" placeholder="id" />
      </Filters>
    </div>
  );
}
