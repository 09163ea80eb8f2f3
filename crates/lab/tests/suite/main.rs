//! Tests of the lab as a whole: with every border faked, and, where this process is root, on real loop devices.

mod clean;
mod cold;
mod direct;
mod errors;
mod faults;
mod guests;
mod host;
mod hung;
mod integrity;
mod killed;
mod load;
mod long;
mod named;
mod programs;
mod support;
