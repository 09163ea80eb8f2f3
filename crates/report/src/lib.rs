//! The `report` part of fstone; see ARCHITECTURE.md.
