//! The `engine` part of fstone; see ARCHITECTURE.md.
