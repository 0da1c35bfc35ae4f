-- An invocation that leaves with time takes its key along, and is asked for who refers to it.

CREATE INDEX idempotency_keys_by_invocation ON idempotency_keys (invocation_id);
