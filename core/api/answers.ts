/** Conversions of stored rows that the answers of several services share. */

type Row = { id: string; projectId: string; createdAt: number; updatedAt: number };

/** The members that most resources have. */
export function resourceOf({ id, projectId, createdAt, updatedAt }: Row) {
  return { id, projectId, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
}

export function dateOf(at: number | null): Date | undefined {
  return at === null ? undefined : new Date(at);
}
