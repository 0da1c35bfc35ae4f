/** The schema of a function's params. */
import { CopyJson, JsonTree } from '../../parts/values/json-tree.tsx';

export function Schema({ json }: { json: string }) {
  const value: unknown = JSON.parse(json); // core wrote it
  return (
    <details>
      <summary>Schema of its params</summary>
      <JsonTree label="Schema" value={value} />
      <CopyJson label="Copy the schema" value={value} />
    </details>
  );
}
