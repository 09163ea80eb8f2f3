//! Loads on real directories.

mod choice;
mod conformance;
mod continued;
mod depth;
mod descriptors;
mod every;
mod exact;
mod faults;
mod ffsb;
mod groups;
mod integrity;
mod ownership;
mod policies;
mod program;
mod promises;
mod settings;
mod support;
mod timing;
