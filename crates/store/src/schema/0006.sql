-- Schema version 6: an excerpt goes whatever of its trial is changed by hand, not a figure only.
DROP TRIGGER IF EXISTS figure_added;
DROP TRIGGER IF EXISTS figure_changed;
DROP TRIGGER IF EXISTS figure_deleted;
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
