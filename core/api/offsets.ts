/** Pages by offset and limit, as the functions family has them. Source: reference.md 1.5. */
import { invalidField } from '../../proto/rpc/errors.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

export function readOffsets(request: { offset?: number | undefined; limit?: number | undefined }): {
  offset: number;
  limit: number;
} {
  const { offset = 0, limit = LIMIT_DEFAULT } = request;
  if (limit < 1 || limit > LIMIT_MAX) throw invalidField('limit', `must be 1 to ${LIMIT_MAX}.`);
  return { offset, limit };
}
