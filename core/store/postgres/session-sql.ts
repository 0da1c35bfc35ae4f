/** Statements about sessions that several files need. */

/** Columns of handoffs. */
export const HANDOFF = `id, project_id AS "projectId", session_id AS "sessionId", status,
  instructions, key_id AS "keyId", created_at AS "createdAt", expires_at AS "expiresAt",
  ended_at AS "endedAt"`;

/** Whether the session has recordings, all of them complete. */
export const IS_WHOLE = `(EXISTS (SELECT 1 FROM recordings WHERE session_id = sessions.id)
    AND NOT EXISTS (
      SELECT 1 FROM recordings WHERE session_id = sessions.id AND completed_at IS NULL))`;

/** Whether it also has ended. */
export const IS_RECORDED = `
  SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NOT NULL AND ${IS_WHOLE}`;

/**
 * The session of the work under a lease: a session of its own, or an invocation's. Index
 * jobs_by_lease.
 */
export const SESSION_OF_LEASE = `
  SELECT COALESCE(invocations.session_id, jobs.id) AS "sessionId", jobs.project_id AS "projectId"
  FROM jobs LEFT JOIN invocations ON invocations.id = jobs.id
  WHERE jobs.lease_id = ? AND jobs.kind IN ('invocation', 'session')`;

/** The session that core gave up a short time ago. Index sessions_by_ended_lease. */
export const LATE_SESSION = `
  SELECT id AS "sessionId", project_id AS "projectId" FROM sessions
  WHERE ended_lease_id = @leaseId AND is_given_up = 1 AND ended_at > @endedAfter`;
