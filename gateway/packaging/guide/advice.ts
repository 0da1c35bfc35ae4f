/** What a client does about each error: the last column of the table in Troubleshooting. */
import type { Reason } from '../../../proto/rpc/errors.ts';

export const ADVICE: Readonly<Record<Reason, string>> = {
  API_KEY_MISSING: 'Send the API key in the header `X-SVC-API-Key` or as `Authorization: Bearer`.',
  API_KEY_INVALID:
    'The key is unknown, malformed or revoked. `tabern keys list` shows the keys of the service.',
  SIGNING_KEY_INVALID: 'The key of a connect URL or a live view link is wrong. Request a new link.',
  PROJECT_MISMATCH: 'Leave `projectId` out, or send the id of the project of this key.',
  FEATURE_DISABLED: 'The operator has switched this feature off.',
  TOKEN_REQUIRED: 'The call is for operators: run it on the machine of the service, with `--data`.',
  CROSS_ORIGIN:
    'Open the console over https or at localhost; behind a proxy, set `TABERN_PUBLIC_URL`. ' +
    'Programs send an API key.',
  ADDRESS_REFUSED:
    'The page has an address that is not public. The operator can allow it with ' +
    '`TABERN_BROWSER_ALLOW_CIDRS`.',
  URL_SIGNATURE_INVALID: 'The signed URL was changed. Request a new one.',
  MALFORMED_JSON: 'The body is not valid JSON, or nests deeper than 32 levels.',
  MALFORMED_REQUEST: 'The request is not valid HTTP.',
  INVALID_FIELD: 'The message names the field and the allowed values.',
  INVALID_CURSOR: 'Start the list again without `cursor`.',
  REGION_UNSUPPORTED: 'Leave `region` out, or send `us-west-2`.',
  ENDPOINT_NOT_ALLOWED:
    'Use a public https URL, or allow the address with `TABERN_WEBHOOK_ALLOW_CIDRS`.',
  UNKNOWN_EVENT_TYPE: 'Use one of the [event types](webhooks.md#create-a-webhook).',
  RESOURCE_NOT_FOUND: 'The object does not exist, was deleted, or belongs to another project.',
  ROUTE_NOT_FOUND: 'Check the path. The [API reference](/docs/api) lists every operation.',
  METHOD_NOT_ALLOWED: 'The header `Allow` lists the methods of this path.',
  UPGRADE_REQUIRED: 'The path accepts WebSocket connections only.',
  NOT_IMPLEMENTED:
    'The operation is part of the interface, and this service does not implement it.',
  UNSUPPORTED_MEDIA_TYPE:
    'Send `content-type: application/json`, or `multipart/form-data` for files.',
  CONTEXT_NAME_TAKEN: 'Choose another name, or use the existing context.',
  LABEL_NAME_TAKEN: 'Choose another name, or use the existing label.',
  SECRET_NAME_TAKEN: 'Update the existing secret, or choose another name.',
  PROJECT_NAME_TAKEN: 'Choose another name.',
  ENDPOINT_EXISTS: 'The project has a webhook for this endpoint already.',
  DELIVERY_NOT_ENDED: 'Wait until the delivery has ended, then replay it.',
  SESSION_PENDING: 'The session is starting. Retry after a second.',
  SESSION_NOT_ENDED: 'Release the session first.',
  FUNCTION_IN_USE:
    'Invocations of the function are pending or running. Wait for them or cancel them.',
  SESSION_OF_INVOCATION: 'The session belongs to an invocation: cancel the invocation instead.',
  HANDOFF_PENDING: 'Complete or cancel the pending handoff of the session first.',
  TOO_MANY_HANDOFFS: 'Start another session.',
  TOO_MANY_SECRETS:
    'Wait until an old secret of the webhook has expired; delete a secret, or detach it.',
  LAST_API_KEY: 'Make another key first, or confirm that the project shall have none.',
  TOO_MANY_API_KEYS: 'Revoke a key that is not needed.',
  TOO_MANY_EXTENSIONS: 'Delete an extension, or ask the operator to raise `TABERN_EXTENSIONS_MAX`.',
  TOO_MANY_CERTIFICATES: 'Delete a certificate that is not needed.',
  TOO_MANY_LABELS: 'Delete a label that is not needed.',
  TOO_MANY_SCHEDULES: 'Delete a schedule.',
  TOO_MANY_WEBHOOKS: 'Delete a webhook.',
  QUOTA_EXCEEDED:
    'Delete stored data, or raise the quota of the project with `tabern projects limits`.',
  LEASE_LOST: 'Internal to runners: the work was given to another runner.',
  SESSION_ENDED: 'The session has ended. Create a new one.',
  RECORDING_EXPIRED: 'The recording is past its retention (`TABERN_RECORDING_DAYS`).',
  URL_EXPIRED: 'Request a new link.',
  BODY_TOO_LARGE: 'The message names the limit.',
  URI_TOO_LONG: 'Shorten the query.',
  HEADERS_TOO_LARGE: 'Send fewer or shorter headers.',
  IDEMPOTENCY_MISMATCH: 'Use a new `Idempotency-Key` for a different request.',
  RECORDING_DISABLED: 'The session was created with `recordSession: false`.',
  BUILD_FAILED: 'The build failed. Its log contains the cause and a fix.',
  ARCHIVE_INVALID: 'The uploaded archive is damaged, or not of the documented format.',
  CONCURRENCY_LIMIT:
    'The project has its number of concurrent sessions. Release one, or raise the limit.',
  RATE_LIMIT: 'Wait for the time in `Retry-After`.',
  QUEUE_FULL: 'Too many invocations or builds are pending. Wait for the time in `Retry-After`.',
  REQUEST_TIMEOUT: 'The request arrived too slowly.',
  CANCELLED: 'The client closed the connection.',
  OUTCOME_UNKNOWN: 'The change may have happened. Read the object before a retry.',
  INTERNAL:
    'An unexpected error. The log contains the cause, with the `x-request-id` of the response.',
  DATA_CORRUPT: 'A stored file is damaged. Restore it from a [backup](operations.md#backups).',
  PAGE_UNREACHABLE: 'The page cannot be loaded. The message names what failed.',
  SEARCH_FAILED: 'The search engine of the operator did not answer. Retry later.',
  PAGE_TOO_LARGE: 'The message names the limit, and how to get less.',
  BROWSER_FAILED: 'The browser did not start or was lost. Retry; the log contains the cause.',
  RECORDING_STORE: 'The runner that holds the recording is not reachable. Retry.',
  BLOBS_UNAVAILABLE:
    'The bucket of the files is not reachable. Retry; `/readyz` and the log have the cause.',
  CORE_UNAVAILABLE: 'The service is starting or stopping. Retry after the time in `Retry-After`.',
  KEYS_NOT_READY: 'Key pairs for contexts are being generated. Retry after a second.',
  STORAGE_FULL: 'The disk is full. Free space: see [Disk space](operations.md#disk-space).',
  DRAINING: 'The service is stopping. Retry after the time in `Retry-After`.',
  NO_RUNNER: 'All runners are busy. Retry after the time in `Retry-After`.',
  PAGE_TIMEOUT: 'The message names what was missing. Wait for less, or give a longer `timeout`.',
  DEADLINE: 'The request took too long. Read the object before a retry of a change.',
};
