//! The `formats` part of fstone; see ARCHITECTURE.md.
