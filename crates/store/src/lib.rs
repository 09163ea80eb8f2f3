//! The `store` part of fstone; see ARCHITECTURE.md.
