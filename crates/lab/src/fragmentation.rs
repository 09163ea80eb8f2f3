//! Extents per file, counted by FIEMAP.
