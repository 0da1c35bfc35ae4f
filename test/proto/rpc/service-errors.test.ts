import type { ServiceError } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  BadRequest,
  QuotaFailure,
  RetryInfo,
} from '../../../proto/gen/google/rpc/error_details.pb.ts';
import { Status } from '../../../proto/gen/google/rpc/status.pb.ts';
import { Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { fromServiceError, toServiceError } from '../../../proto/rpc/service-errors.ts';

const test = suite('proto/rpc/service-errors');

/** The details that go with ErrorInfo, by the last word of their type. */
function detailsOf(fault: Fault): Map<string, Uint8Array> {
  const bytes = toServiceError(fault).metadata?.get('grpc-status-details-bin')[0];
  const { details } = Status.decode(bytes as Buffer);
  return new Map(details.map(({ typeUrl, value }) => [typeUrl.replace(/.*\./, ''), value]));
}

const none = new Uint8Array();

test('a limit names its subject and the time to retry', () => {
  const limit = new Fault('CONCURRENCY_LIMIT', 'Three run.', { limit: 3, current: 3 });
  const details = detailsOf(limit);
  assert.equal([...details.keys()], ['ErrorInfo', 'QuotaFailure', 'RetryInfo']);
  const { violations } = QuotaFailure.decode(details.get('QuotaFailure') ?? none);
  assert.equal(violations, [{ subject: 'project', description: 'Three run.' }]);
  const { retryDelay } = RetryInfo.decode(details.get('RetryInfo') ?? none);
  assert.is(retryDelay?.seconds, 5n);
  const rate = new Fault('RATE_LIMIT', 'Five.', { limit: 5, current: 5, retryAfterS: 41.2 });
  const later = RetryInfo.decode(detailsOf(rate).get('RetryInfo') ?? none);
  assert.is(later.retryDelay?.seconds, 42n);
});

test('a wrong field is named, and no other detail is sent', () => {
  const details = detailsOf(invalidField('a.b', 'must be c.'));
  assert.equal([...details.keys()], ['ErrorInfo', 'BadRequest']);
  const { fieldViolations } = BadRequest.decode(details.get('BadRequest') ?? none);
  assert.equal(fieldViolations, [{ field: 'a.b', description: '`a.b` must be c.' }]);
});

test('reason, message and facts are restored, facts as text', () => {
  const fault = new Fault('CONCURRENCY_LIMIT', 'Three run.', { limit: 3 });
  const again = fromServiceError(toServiceError(fault) as ServiceError);
  assert.equal(
    [again.reason, again.message, again.facts],
    ['CONCURRENCY_LIMIT', 'Three run.', { limit: '3' }],
  );
});

test.run();
