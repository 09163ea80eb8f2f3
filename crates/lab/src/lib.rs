//! The `lab` part of fstone; see ARCHITECTURE.md.
