/**
 * Labels: names of a project's own, by which its sessions are found. existing -> deleted, once.
 * Names that differ in case only are one label. A session's labels are replaced as a whole, and
 * missing ones are created with them.
 */
import type { Label, LabelServiceService } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { resourceOf } from '../api/answers.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { checkedName, nameKey } from '../api/names.ts';
import { readPage } from '../api/pagination.ts';
import { newId, pathId } from '../common/ids.ts';
import type { LabelRow, WantedLabel } from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';

/** Of a project. Source: sessions.proto. */
export const LABELS_MAX = 1_000;
/** Of a session. Source: sessions.proto. */
const SESSION_LABELS_MAX = 50;
/** Ours: each is looked up for each session that a list examines. */
const FILTER_MAX = 10;

type Options = { store: Store; now: () => number };

export function labelService({
  store,
  now,
}: Options): Service<typeof LabelServiceService, ProjectCaller> {
  return {
    async createLabel({ name }, { projectId }) {
      const wanted = { ...labelOf('name', name), projectId, at: now() };
      return { label: toProto(untaken(await store.createLabel(wanted, LABELS_MAX), wanted)) };
    },

    async listLabels(request, { projectId }) {
      return readPage(request, (page) => store.listLabels({ ...page, projectId }), toProto);
    },

    async updateLabel({ id: text, name }, { projectId }) {
      const id = pathId('id', text);
      const wanted = { ...labelOf('name', name), id, projectId, at: now() };
      const renamed = orNotFound(await store.renameLabel(wanted), 'Label', id);
      return { label: toProto(untaken(renamed, wanted)) };
    },

    async deleteLabel({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const isDeleted = await store.deleteLabel({ id, projectId, at: now() });
      orNotFound(isDeleted || undefined, 'Label', id);
      return {};
    },
  };
}

/** Each label once. Throws INVALID_FIELD. */
export function wantedLabels(names: readonly string[]): WantedLabel[] {
  return labelsOf('labels', names);
}

/** The keys of the labels that a list is filtered by. Throws INVALID_FIELD. */
export function filteredLabels(names: readonly string[]): string[] {
  return labelsOf('label', names, FILTER_MAX).map((label) => label.nameKey);
}

function labelsOf(
  field: string,
  names: readonly string[],
  max = SESSION_LABELS_MAX,
): WantedLabel[] {
  if (names.length > max) {
    throw invalidField(field, `must have at most ${max} items.`);
  }
  const labels = names.map((name, index) => labelOf(`${field}[${index}]`, name));
  return [...new Map(labels.map((label) => [label.nameKey, label])).values()];
}

function labelOf(field: string, text: string): WantedLabel {
  const name = checkedName(field, text);
  return { id: newId(), name, nameKey: nameKey(name) };
}

function untaken(made: LabelRow | 'taken', { name }: WantedLabel): LabelRow {
  if (made !== 'taken') return made;
  throw new Fault('LABEL_NAME_TAKEN', `A label named "${name}" already exists.`, { name });
}

function toProto({ name, ...row }: LabelRow): Label {
  return { ...resourceOf(row), name };
}
