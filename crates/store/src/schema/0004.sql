-- Schema version 4: the process that carries a run out, as JSON, so that a run that is going on, or that another machine
-- began in a directory that both see, is not taken for one that was killed. NULL for runs of before, and imported ones.
ALTER TABLE runs ADD COLUMN holder TEXT;
