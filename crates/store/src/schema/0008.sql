-- Schema version 8: which machine made a block, where it was not the run's own (runs.host).
CREATE TABLE blocks (
    run       INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    block     INTEGER NOT NULL,
    machine   TEXT    NOT NULL CHECK (length(machine) BETWEEN 1 AND 300),
    host      TEXT    NOT NULL,
    kernel    TEXT    NOT NULL,
    inventory TEXT    NOT NULL,
    PRIMARY KEY (run, block)
) STRICT;
