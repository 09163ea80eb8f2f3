//! The store from outside: what goes in comes out, whatever happens in between.

mod bundles;
mod concurrency;
mod crash;
mod documentation;
mod merge;
mod opening;
mod ownership;
mod round_trip;
mod samples;
