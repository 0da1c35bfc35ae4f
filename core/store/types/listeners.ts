/** Those who read a project's events as they happen. */

export type HeardEvent = { seq: number; id: string; type: string; body: Uint8Array };

export type ListenerOps = {
  /** Events of the project are kept until then; answers the place of now in their order. */
  listen(listener: { projectId: string; until: number }): number;
  /** Events behind `after`, oldest first; tests of webhooks are none. */
  eventsAfter(wanted: { projectId: string; after: number; limit: number }): HeardEvent[];
};
