/**
 * What changes in the projects that a console watches, from triggers of this connection: each
 * statement that changes a status reports it, wherever it is. Changes are in memory until they are
 * taken; an operation that is undone may report one too many.
 */
import type { ChangedKind, Changes, ConsoleOps } from '../../types/console.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

/** Ids of one kind between two readings; with more, the whole list counts as changed. */
const IDS_MAX = 100;

type Watched = Map<ChangedKind, Set<string>>;

export const consoleChangeOps = preparedOnce(
  (tx: Tx): Pick<ConsoleOps, 'watchChanges' | 'unwatchChanges' | 'takeChanges'> => {
    const watched = new Map<string, Watched>();
    addTriggers(tx, watched);
    return {
      watchChanges(projectId) {
        if (!watched.has(projectId)) watched.set(projectId, new Map());
      },
      unwatchChanges(projectId) {
        watched.delete(projectId);
      },
      takeChanges(projectId) {
        const changes = watched.get(projectId);
        if (changes === undefined) return [];
        const taken = [...changes].map(([kind, ids]): Changes => {
          return { kind, ids: ids.size > IDS_MAX ? undefined : [...ids] };
        });
        changes.clear();
        return taken;
      },
    };
  },
);

/** Temporary triggers: of this connection, and not in the file. */
function addTriggers({ db, wake }: Tx, watched: ReadonlyMap<string, Watched>): void {
  db.function('is_watching', () => (watched.size > 0 ? 1 : 0));
  db.function('tell_change', (kind: ChangedKind, projectId: string, id: string) => {
    const changes = watched.get(projectId);
    if (changes === undefined) return null;
    const ids = changes.get(kind) ?? new Set();
    changes.set(kind, ids);
    if (ids.size <= IDS_MAX) ids.add(id);
    wake(`changes:${projectId}`);
    return null;
  });
  for (const [name, { on, when = 'TRUE', tell }] of Object.entries(TRIGGERS)) {
    db.exec(`CREATE TEMP TRIGGER IF NOT EXISTS ${name} AFTER ${on}
      WHEN is_watching() AND ${when} BEGIN SELECT tell_change(${tell}); END`);
  }
}

const ofRow = (kind: ChangedKind): string => `'${kind}', NEW.project_id, NEW.id`;
const OF_KEY = `'keys', NEW.project_id, COALESCE(NEW.public_id, '')`;
/** Webhooks of its project are few; of a project's events each has one. */
const OF_DELIVERY = `'deliveries',
  (SELECT project_id FROM main.webhooks WHERE id = NEW.webhook_id), NEW.event_id`;

/** A recording arrives until ten minutes after the end of its session. */
const OF_RECORDING = `'sessions', (SELECT project_id FROM main.recordings AS one
  WHERE one.session_id = NEW.session_id AND one.page_id = NEW.page_id), NEW.session_id`;

const TRIGGERS: Readonly<Record<string, { on: string; when?: string; tell: string }>> = {
  session_added: { on: 'INSERT ON main.sessions', tell: ofRow('sessions') },
  session_changed: { on: 'UPDATE OF status ON main.sessions', tell: ofRow('sessions') },
  session_labelled: {
    on: 'INSERT ON main.session_labels',
    tell: `'sessions', NEW.project_id, NEW.session_id`,
  },
  session_unlabelled: {
    on: 'DELETE ON main.session_labels',
    tell: `'sessions', OLD.project_id, OLD.session_id`,
  },
  session_released: {
    on: 'UPDATE OF released_at ON main.jobs',
    when: `NEW.kind = 'session'`,
    tell: ofRow('sessions'),
  },
  recording_added: { on: 'INSERT ON main.recording_parts', tell: OF_RECORDING },
  invocation_added: { on: 'INSERT ON main.invocations', tell: ofRow('invocations') },
  invocation_changed: { on: 'UPDATE OF status ON main.invocations', tell: ofRow('invocations') },
  build_added: { on: 'INSERT ON main.builds', tell: ofRow('builds') },
  build_changed: { on: 'UPDATE OF status ON main.builds', tell: ofRow('builds') },
  function_added: { on: 'INSERT ON main.functions', tell: ofRow('functions') },
  function_changed: {
    on: 'UPDATE OF updated_at, deleted_at ON main.functions',
    tell: ofRow('functions'),
  },
  webhook_added: { on: 'INSERT ON main.webhooks', tell: ofRow('webhooks') },
  webhook_changed: {
    on: 'UPDATE OF status, endpoint, event_types, first_failure_at ON main.webhooks',
    when: `(OLD.status <> NEW.status OR OLD.endpoint <> NEW.endpoint
      OR OLD.event_types <> NEW.event_types OR OLD.first_failure_at IS NOT NEW.first_failure_at)`,
    tell: ofRow('webhooks'),
  },
  context_added: { on: 'INSERT ON main.contexts', tell: ofRow('contexts') },
  context_changed: {
    on: 'UPDATE OF status, name, save_seq ON main.contexts',
    tell: ofRow('contexts'),
  },
  download_added: { on: 'INSERT ON main.downloads', tell: ofRow('downloads') },
  download_removed: {
    on: 'DELETE ON main.downloads',
    tell: ofRow('downloads').replaceAll('NEW.', 'OLD.'),
  },
  extension_added: { on: 'INSERT ON main.extensions', tell: ofRow('extensions') },
  extension_changed: { on: 'UPDATE OF deleted_at ON main.extensions', tell: ofRow('extensions') },
  key_added: { on: 'INSERT ON main.api_keys', tell: OF_KEY },
  key_changed: { on: 'UPDATE OF revoked_at ON main.api_keys', tell: OF_KEY },
  delivery_added: { on: 'INSERT ON main.deliveries', tell: OF_DELIVERY },
  delivery_changed: {
    on: 'UPDATE OF state ON main.deliveries',
    when: 'OLD.state <> NEW.state',
    tell: OF_DELIVERY,
  },
};
