/** A list in the params of a session, as a table of its texts; empty when there is no list. */
export function listOf(path: string): string {
  const list = `json_of(sessions.params) #> '${path}'`;
  return `json_array_elements_text(CASE json_typeof(${list}) WHEN 'array' THEN ${list} ELSE '[]'
    END)`;
}

/**
 * In a query by `@sessionId`: the rows that the params of the session name by `ids`, if they are of
 * its project.
 */
export function isNamed(ids: string): string {
  return `id = ANY(ARRAY(
      SELECT ids.id FROM sessions CROSS JOIN LATERAL (${ids}) AS ids (id)
      WHERE sessions.id = @sessionId AND ids.id IS NOT NULL))
    AND project_id = (SELECT sessions.project_id FROM sessions WHERE sessions.id = @sessionId)`;
}
