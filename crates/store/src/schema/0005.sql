-- Schema version 5: of each trial, in one value, what reports show; src/excerpt.rs says why. The tables are what counts: where a figure
-- is changed by hand the excerpt goes, and the run is read from the tables. Trials of before have none.
CREATE TABLE excerpts (
    run        INTEGER NOT NULL,
    cell       INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    excerpt    BLOB    NOT NULL,
    PRIMARY KEY (run, cell, repetition),
    FOREIGN KEY (run, cell, repetition) REFERENCES trials (run, cell, repetition) ON DELETE CASCADE
) STRICT;
CREATE TRIGGER figure_added AFTER INSERT ON figures BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (new.run, new.cell, new.repetition);
END;
CREATE TRIGGER figure_changed AFTER UPDATE ON figures BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
CREATE TRIGGER figure_deleted AFTER DELETE ON figures BEGIN
    DELETE FROM excerpts WHERE (run, cell, repetition) = (old.run, old.cell, old.repetition);
END;
