/** Commands that run a function, ready to copy, with the real address of the service. Pure. */

import { type Field, fieldsOf } from './model/schema-form.ts';
import type { Invoked } from './model/types.ts';

export type Call = 'curl' | 'cli' | 'script';
type Wanted = { baseUrl: string; id: string; name: string; json: string };

/** Ours: a command that a person reads. Longer params are named, not repeated. */
const JSON_MAX_CHARS = 2_000;

/** For a function: the params of its newest run, else those that its schema requires. */
export function callTexts(baseUrl: string, invoked: Invoked) {
  const { id, name, paramsSchemaJson, lastParamsJson } = invoked;
  const fields = fieldsOf(
    paramsSchemaJson === undefined ? undefined : JSON.parse(paramsSchemaJson),
  );
  const json = lastParamsJson ?? JSON.stringify(exampleOf(fields ?? []));
  return commandsOf({ baseUrl, id, name, json: json.length > JSON_MAX_CHARS ? '{}' : json });
}

/** One command for each way to call. */
export function commandsOf({ baseUrl, id, name, json }: Wanted): Record<Call, string> {
  const url = `${baseUrl}/v1/functions/${id}/invoke`;
  const body = `{"params": ${json}}`;
  return {
    curl: `curl -X POST ${url} \\
  -H "X-SVC-API-Key: $TABERN_API_KEY" -H "Content-Type: application/json" \\
  -d ${quoted(body)}`,
    cli: `tabern invoke ${quoted(name)} --params ${quoted(json)}`,
    script: `const response = await fetch('${url}', {
  method: 'POST',
  headers: {
    'X-SVC-API-Key': process.env.TABERN_API_KEY,
    'Content-Type': 'application/json',
    Prefer: 'wait=60',
  },
  body: JSON.stringify({ params: ${json} }),
});
const { status, results } = await response.json();`,
  };
}

/** One word of a POSIX shell. */
function quoted(text: string): string {
  if (/^[\w./:@-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

const EXAMPLES: Record<Field['kind'], unknown> = {
  text: '…',
  number: 1,
  boolean: true,
  choice: null,
  json: null,
};

function exampleOf(fields: readonly Field[]) {
  const needed = fields.filter(({ isRequired }) => isRequired);
  return Object.fromEntries(
    needed.map(({ key, kind, choices: [first] }) => {
      return [key, first === undefined ? EXAMPLES[kind] : JSON.parse(first)];
    }),
  );
}
