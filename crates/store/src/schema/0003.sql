-- Schema version 3: which run it is, wherever it is kept, and whether it came from elsewhere. Runs of before have their start
-- and host for an identity, as in the bundles that were made of them; one that was imported twice has it twice.
ALTER TABLE runs ADD COLUMN identity TEXT NOT NULL DEFAULT '';
UPDATE runs SET identity = started_unix_ns || '@' || host;
CREATE INDEX runs_by_identity ON runs (identity);
ALTER TABLE runs ADD COLUMN imported_unix_ns INTEGER;
