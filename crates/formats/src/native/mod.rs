//! The workload file: the workload in a readable TOML form.
