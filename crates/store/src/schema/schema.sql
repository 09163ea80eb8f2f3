-- The schema. docs/store.md describes every table and column; a test compares the two.

-- One run of a study. AUTOINCREMENT: the number of a deleted run is never given to another one.
CREATE TABLE runs (
    run              INTEGER PRIMARY KEY AUTOINCREMENT,
    study            TEXT    NOT NULL,
    title            TEXT    NOT NULL,
    quick            INTEGER NOT NULL CHECK (quick IN (0, 1)),
    host             TEXT    NOT NULL,
    kernel           TEXT    NOT NULL,
    started_unix_ns  INTEGER NOT NULL,
    finished_unix_ns INTEGER,
    planned_minimum  INTEGER NOT NULL,
    command          TEXT    NOT NULL,
    plan             TEXT    NOT NULL,
    inventory        TEXT    NOT NULL,
    -- Which run it is, wherever it is kept.
    identity         TEXT    NOT NULL,
    -- NULL unless it came from elsewhere.
    imported_unix_ns INTEGER,
    -- The process that carries the run out, as JSON, so that a run that is going on, or that another machine began in a directory
    -- that both see, is not taken for one that was killed. NULL for imported runs.
    holder           TEXT,
    note             TEXT CHECK (length(note) BETWEEN 1 AND 200)
) STRICT;
CREATE INDEX runs_by_identity ON runs (identity);

-- Which machine made a block, where it was not the run's own (runs.host).
CREATE TABLE blocks (
    run       INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    block     INTEGER NOT NULL,
    machine   TEXT    NOT NULL CHECK (length(machine) BETWEEN 1 AND 300),
    host      TEXT    NOT NULL,
    kernel    TEXT    NOT NULL,
    inventory TEXT    NOT NULL,
    PRIMARY KEY (run, block)
) STRICT;

-- Names for runs that others are compared with.
CREATE TABLE baselines (
    name          TEXT    NOT NULL PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    saved_unix_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX baselines_by_run ON baselines (run);

-- The plan's cells and their levels, taken out of runs.plan so that SQL can speak of them.
CREATE TABLE cells (
    run        INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    cell       INTEGER NOT NULL,
    label      TEXT    NOT NULL,
    filesystem TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    mkfs       TEXT    NOT NULL,
    mount      TEXT    NOT NULL,
    device     TEXT    NOT NULL,
    PRIMARY KEY (run, cell)
) STRICT, WITHOUT ROWID;

CREATE TABLE levels (
    run           INTEGER NOT NULL,
    cell          INTEGER NOT NULL,
    factor_number INTEGER NOT NULL,
    factor        TEXT    NOT NULL,
    level         TEXT    NOT NULL,
    number        INTEGER,
    PRIMARY KEY (run, cell, factor_number),
    FOREIGN KEY (run, cell) REFERENCES cells (run, cell) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Every start of a trial. One without a row in trials was interrupted, or is running.
CREATE TABLE attempts (
    run             INTEGER NOT NULL,
    cell            INTEGER NOT NULL,
    repetition      INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    FOREIGN KEY (run, cell) REFERENCES cells (run, cell) ON DELETE CASCADE
) STRICT;
CREATE INDEX attempts_by_trial ON attempts (run, cell, repetition);

CREATE TABLE trials (
    run             INTEGER NOT NULL,
    cell            INTEGER NOT NULL,
    repetition      INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    duration_ns     INTEGER NOT NULL,
    seed            TEXT    NOT NULL,
    outcome         TEXT    NOT NULL
        CHECK (outcome IN ('completed', 'refused', 'failed', 'hung', 'crashed', 'skipped')),
    reason_step     TEXT,
    reason_words    TEXT,
    reason_cure     TEXT,
    effective_mount TEXT,
    PRIMARY KEY (run, cell, repetition),
    FOREIGN KEY (run, cell) REFERENCES cells (run, cell) ON DELETE CASCADE,
    CHECK ((outcome = 'completed') = (reason_step IS NULL) AND (reason_step IS NULL) = (reason_words IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE superblocks (
    run        INTEGER NOT NULL,
    cell       INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    PRIMARY KEY (run, cell, repetition, number),
    FOREIGN KEY (run, cell, repetition) REFERENCES trials (run, cell, repetition) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE warnings (
    run        INTEGER NOT NULL,
    cell       INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    PRIMARY KEY (run, cell, repetition, number),
    FOREIGN KEY (run, cell, repetition) REFERENCES trials (run, cell, repetition) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
    run         INTEGER NOT NULL,
    cell        INTEGER NOT NULL,
    repetition  INTEGER NOT NULL,
    step        TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    started_ns  INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    PRIMARY KEY (run, cell, repetition, step),
    FOREIGN KEY (run, cell, repetition) REFERENCES trials (run, cell, repetition) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The only place where figures are kept. SQLite has no not-a-number: a NULL value stands for it. A column of type REAL
-- would keep -0.0 as the integer 0, so the type is left to the value and checked.
CREATE TABLE figures (
    run        INTEGER NOT NULL,
    cell       INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    step       TEXT    NOT NULL,
    metric     TEXT    NOT NULL,
    value      ANY CHECK (typeof(value) IN ('real', 'null')),
    unit       TEXT    NOT NULL,
    better     TEXT    NOT NULL CHECK (better IN ('higher', 'lower', 'neither')),
    number     INTEGER NOT NULL,
    PRIMARY KEY (run, cell, repetition, step, metric),
    FOREIGN KEY (run, cell, repetition, step) REFERENCES steps (run, cell, repetition, step) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Rowid tables from here on: their rows are long, which WITHOUT ROWID tables take badly.
CREATE TABLE commands (
    run         INTEGER NOT NULL,
    cell        INTEGER NOT NULL,
    repetition  INTEGER NOT NULL,
    step        TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    argv        TEXT    NOT NULL,
    status      INTEGER,
    duration_ns INTEGER NOT NULL,
    output_tail TEXT    NOT NULL,
    PRIMARY KEY (run, cell, repetition, step, number),
    FOREIGN KEY (run, cell, repetition, step) REFERENCES steps (run, cell, repetition, step) ON DELETE CASCADE
) STRICT;

CREATE TABLE loads (
    run        INTEGER NOT NULL,
    cell       INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    step       TEXT    NOT NULL,
    json_bytes INTEGER NOT NULL,
    report     BLOB    NOT NULL,
    PRIMARY KEY (run, cell, repetition, step),
    FOREIGN KEY (run, cell, repetition, step) REFERENCES steps (run, cell, repetition, step) ON DELETE CASCADE
) STRICT;

-- The load reports' operations, taken out of loads.report so that SQL can speak of them.
CREATE TABLE operations (
    run             INTEGER NOT NULL,
    cell            INTEGER NOT NULL,
    repetition      INTEGER NOT NULL,
    step            TEXT    NOT NULL,
    number          INTEGER NOT NULL,
    thread_group    TEXT    NOT NULL,
    operation       TEXT    NOT NULL,
    invocations     INTEGER NOT NULL,
    transactions    INTEGER NOT NULL,
    calls           INTEGER NOT NULL,
    read_bytes      INTEGER NOT NULL,
    written_bytes   INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    latency_ns_mean REAL,
    latency_ns_p50  REAL,
    latency_ns_p99  REAL,
    latency_ns_max  INTEGER,
    PRIMARY KEY (run, cell, repetition, step, number),
    FOREIGN KEY (run, cell, repetition, step) REFERENCES steps (run, cell, repetition, step) ON DELETE CASCADE
) STRICT;

-- Figures with the words that belong to them, for queries by hand.
CREATE VIEW measurements AS
SELECT figures.run, runs.study, figures.cell, cells.label, figures.repetition, trials.position, trials.outcome,
       figures.step, figures.metric, figures.value, figures.unit, figures.better
FROM figures
JOIN runs USING (run)
JOIN cells USING (run, cell)
JOIN trials USING (run, cell, repetition);

-- Of each trial, in one value, what reports show; src/excerpt.rs says why. The tables are what counts: where something of a trial is
-- changed by hand its excerpt goes, and the run is read from the tables.
CREATE TABLE excerpts (
    run        INTEGER NOT NULL,
    cell       INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    excerpt    BLOB    NOT NULL,
    PRIMARY KEY (run, cell, repetition),
    FOREIGN KEY (run, cell, repetition) REFERENCES trials (run, cell, repetition) ON DELETE CASCADE
) STRICT;
CREATE TRIGGER superblock_added AFTER INSERT ON superblocks BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER superblock_changed AFTER UPDATE ON superblocks BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER superblock_deleted AFTER DELETE ON superblocks BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
CREATE TRIGGER warning_added AFTER INSERT ON warnings BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER warning_changed AFTER UPDATE ON warnings BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER warning_deleted AFTER DELETE ON warnings BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
CREATE TRIGGER step_added AFTER INSERT ON steps BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER step_changed AFTER UPDATE ON steps BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER step_deleted AFTER DELETE ON steps BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
CREATE TRIGGER figure_added AFTER INSERT ON figures BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER figure_changed AFTER UPDATE ON figures BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER figure_deleted AFTER DELETE ON figures BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
CREATE TRIGGER command_added AFTER INSERT ON commands BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER command_changed AFTER UPDATE ON commands BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER command_deleted AFTER DELETE ON commands BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
CREATE TRIGGER load_added AFTER INSERT ON loads BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER load_changed AFTER UPDATE ON loads BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER load_deleted AFTER DELETE ON loads BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
