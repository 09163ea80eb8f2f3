#![expect(unsafe_code, reason = "allocates zeroed atomics without touching their pages")]
//! Arrays of atomics that grow without moving, and cost memory only where they are used.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A type whose zero bytes are a valid value.
pub(crate) trait Zeroed {}
impl Zeroed for AtomicU32 {}
impl Zeroed for AtomicU64 {}

/// An array that grows without moving: each further piece is as long as all before it.
#[derive(Debug)]
pub(crate) struct Growing<T> {
    first: Box<[T]>,
    more: [OnceLock<Box<[T]>>; 32],
}

impl<T: Zeroed> Growing<T> {
    /// With `length` items, at least one.
    pub(crate) fn new(length: u64) -> Self {
        Self { first: zeroed(length), more: [const { OnceLock::new() }; 32] }
    }

    #[inline]
    pub(crate) fn at(&self, index: u64) -> &T {
        match self.first.get(index as usize) {
            Some(item) => item,
            None => self.beyond(index),
        }
    }

    /// Every item that there is room for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.more.iter().filter_map(OnceLock::get).flat_map(|piece| piece.iter()))
    }

    #[cold]
    fn beyond(&self, index: u64) -> &T {
        let base = self.first.len() as u64;
        let doubling = (index / base).ilog2();
        let start = base << doubling;
        &self.more[doubling as usize].get_or_init(|| zeroed(start))[(index - start) as usize]
    }
}

fn zeroed<T: Zeroed>(length: u64) -> Box<[T]> {
    let length = usize::try_from(length).expect("a table fits into memory");
    // SAFETY: `Zeroed` is implemented only for types for which all zero bits are a valid value.
    unsafe { Box::new_zeroed_slice(length).assume_init() }
}
