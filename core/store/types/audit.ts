/** The audit of changes made with logins of the console, as stored. */
import type { Listed, ListWanted } from './console.ts';

export type LoginKind = 'key' | 'code' | 'operator';

export type NewAuditEvent = {
  id: string;
  at: number;
  login: LoginKind;
  /** Public part of the login's API key. */
  keyId: string | null;
  operation: string;
  objectId: string | null;
  projectId: string | null;
  address: string;
};

/** What is known after the change; null: nothing more than before. */
export type AuditEnd = {
  id: string;
  outcome: string;
  objectId: string | null;
  projectId: string | null;
};

export type AuditRow = Omit<NewAuditEvent, 'at'> & {
  createdAt: number;
  projectName: string | null;
  outcome: string | null;
};

export type AuditOps = {
  addAuditEvent(event: NewAuditEvent): void;
  endAuditEvent(end: AuditEnd): void;
  /** Of one project, or of all. */
  auditEvents(wanted: ListWanted & { isOfAll: boolean }): Listed<AuditRow>;
  /** Removes at most `max` that are older; returns the number. */
  purgeAudit(wanted: { before: number; at: number; max: number }): number;
};
