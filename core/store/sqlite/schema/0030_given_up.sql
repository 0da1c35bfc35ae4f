-- Sessions that core gave up: `ended_lease_id` is the lease whose runner may still send their files.

ALTER TABLE sessions ADD COLUMN is_given_up INTEGER NOT NULL DEFAULT 0;
