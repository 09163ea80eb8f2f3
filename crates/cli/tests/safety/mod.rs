//! What docs/safety.md promises, tried on the binary: as root on loop images, skipped with a reason elsewhere.

mod killed;
