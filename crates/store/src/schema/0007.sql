-- Schema version 7: what a user says about a run, in a line.
ALTER TABLE runs ADD COLUMN note TEXT CHECK (length(note) BETWEEN 1 AND 200);
