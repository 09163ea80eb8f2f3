//! What `patch.rs` is on other architectures: nothing.

use super::kept::Event;
use libc::pid_t;

pub(super) const CODE: u64 = 0;
pub(super) const CODE_BYTES: u32 = 1;

pub(super) fn way(_: u64) -> u8 {
    0
}

pub(super) enum Patches {}

impl Patches {
    pub(super) fn new() -> Option<Self> {
        None
    }

    pub(super) fn has(&self, _: pid_t) -> bool {
        match *self {}
    }

    pub(super) fn are_used(&self) -> bool {
        match *self {}
    }

    pub(super) fn enter(&mut self, _: pid_t, _: impl Iterator<Item = i32>) -> bool {
        match *self {}
    }

    pub(super) fn fork(&mut self, _: Option<pid_t>, _: pid_t) {
        match *self {}
    }

    pub(super) fn enable(&mut self, _: pid_t, _: bool) {
        match *self {}
    }

    pub(super) fn part(&mut self, _: pid_t) {
        match *self {}
    }

    pub(super) fn leave(&mut self, _: pid_t) {
        match *self {}
    }

    pub(super) fn know(&self, _: pid_t, _: i32, _: impl FnOnce() -> bool) {
        match *self {}
    }

    pub(super) fn events(&mut self, _: Option<pid_t>, _: u64, _: impl Fn() -> u64) -> Vec<Event> {
        match *self {}
    }

    pub(super) fn patch(&mut self, _: pid_t, _: u64) {
        match *self {}
    }

    pub(super) fn interrupted(&mut self, _: pid_t, _: i32) -> bool {
        match *self {}
    }
}
