-- Schema version 2: names for runs that others are compared with.
CREATE TABLE baselines (
    name          TEXT    NOT NULL PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    saved_unix_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX baselines_by_run ON baselines (run);
