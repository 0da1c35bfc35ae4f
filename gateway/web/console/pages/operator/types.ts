/** The JSON of the operator pages: proto/tabern/v1/operators.proto, operator_console.proto. */
import type { SessionStatus } from '../../data/types.ts';

type Quota = { used: number; limit: number };
export type Limits = Record<LimitName, number>;
export type LimitName =
  | 'sessions'
  | 'invocations'
  | 'queue'
  | 'contexts'
  | 'contextMib'
  | 'downloadMib'
  | 'recordingMib'
  | 'uploadMib'
  | 'logMib';
export type Storage = Record<
  'contexts' | 'contextBytes' | 'downloadBytes' | 'recordingBytes' | 'uploadBytes' | 'logBytes',
  Quota
>;
export type OperatedProject = {
  project: { id: string; name: string; createdAt: string };
  limits: Limits;
  sessions: number;
  invocations: number;
  queued: number;
  browserMinutes: number;
  proxyBytes: number;
  storage: Storage;
};
export type ApiKey = {
  id: string;
  projectId: string;
  name: string;
  createdAt: string;
  lastUsedAt?: string;
  revokedAt?: string;
};
export type OperatorSession = {
  id: string;
  projectId: string;
  projectName: string;
  status: SessionStatus;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  endReason?: string;
  isReleased: boolean;
};
export type Runner = {
  id: string;
  seenAt: string;
  isPresent: boolean;
  isBrowserFailing: boolean;
  isDraining: boolean;
  running: number;
  facts?: {
    version: string;
    sandbox: string;
    sessions: number;
    invocations: number;
    builds: number;
    labels: { name: string; value: string }[];
  };
  browser?: { product: string; spares: number };
};
export type Queue = {
  projectId: string;
  projectName: string;
  kind: string;
  waiting: number;
  running: number;
  limit: number;
  vtime: number;
};
export type AuditEvent = {
  id: string;
  createdAt: string;
  login: 'key' | 'code' | 'operator';
  keyId?: string;
  operation: string;
  objectId?: string;
  projectId?: string;
  projectName?: string;
  address: string;
  outcome?: string;
};
export type LogNotice = {
  number: number;
  loggedAt: string;
  level: 'warn' | 'error';
  message: string;
};
export type Finding = { check: string; level: 'ok' | 'warn' | 'fail'; says: string; fix?: string };
