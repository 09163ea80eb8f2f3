//! Devices that are not there: for tests of everything above them.

use super::{
    BlockFacts, DeviceLock, Devices, FileId, FileKind, LoopHandle, LoopSettings, Refusal, Sampled, Space, file_id,
};
use crate::faults::Faults;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Loop and zram devices in memory; images are real files.
#[derive(Debug)]
pub struct FakeDevices {
    faults: Arc<Faults>,
    state: Arc<Mutex<State>>,
    free_bytes: AtomicU64,
    snatches: AtomicU64,
    dead: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    loops: BTreeMap<u32, (FileId, u64)>,
    zrams: BTreeMap<u32, u64>,
    queue: BTreeMap<((u32, u32), String), String>,
    facts: BTreeMap<PathBuf, BlockFacts>,
    erased: Vec<PathBuf>,
    discarded: Vec<PathBuf>,
    unreadable: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Attached {
    index: u32,
    state: Arc<Mutex<State>>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).loops.remove(&self.index);
    }
}

impl Default for FakeDevices {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeDevices {
    pub fn new() -> Self {
        Self {
            faults: Arc::default(),
            state: Arc::default(),
            free_bytes: AtomicU64::new(1 << 40),
            snatches: AtomicU64::new(0),
            dead: AtomicBool::new(false),
        }
    }

    #[must_use]
    pub fn with_faults(mut self, faults: Arc<Faults>) -> Self {
        self.faults = faults;
        self
    }

    pub fn set_free_bytes(&self, bytes: u64) {
        self.free_bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn snatch_loops(&self, count: u64) {
        self.snatches.store(count, Ordering::Relaxed);
    }

    /// From now on no filesystem answers.
    pub fn set_dead(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub fn set_facts(&self, path: &Path, facts: BlockFacts) {
        self.state().facts.insert(path.to_owned(), facts);
    }

    pub fn set_default_queue(&self, device: (u32, u32), name: &str, value: &str) {
        self.state().queue.insert((device, name.to_owned()), value.to_owned());
    }

    pub fn in_use(&self) -> usize {
        let state = self.state();
        state.loops.len() + state.zrams.len()
    }

    pub fn erased(&self) -> Vec<PathBuf> {
        self.state().erased.clone()
    }

    /// Paths whose blocks were given back, each as often as that was done.
    pub fn discarded(&self) -> Vec<PathBuf> {
        self.state().discarded.clone()
    }

    pub fn make_unreadable(&self, path: &Path) {
        self.state().unreadable.insert(path.to_owned());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self) -> io::Result<MutexGuard<'_, State>> {
        if self.faults.strikes() { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(self.state()) }
    }
}

pub(super) fn blank(path: &Path, number: (u32, u32), size_bytes: u64) -> BlockFacts {
    BlockFacts { number, size_bytes, ..BlockFacts::of_kind(FileKind::Block, path.to_owned()) }
}

impl Devices for FakeDevices {
    fn free_loop(&self) -> io::Result<u32> {
        let state = self.call()?;
        Ok((0..).find(|index| !state.loops.contains_key(index)).unwrap_or(0))
    }

    fn attach_loop(&self, index: u32, image: &File, _settings: LoopSettings) -> io::Result<LoopHandle> {
        let facts = image.metadata()?;
        let mut state = self.call()?;
        let snatched = self.snatches.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if snatched.is_ok() || state.loops.contains_key(&index) {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        state.loops.insert(index, (file_id(&facts), facts.len()));
        Ok(LoopHandle::of(Attached { index, state: Arc::clone(&self.state) }))
    }

    fn loop_backing(&self, index: u32) -> io::Result<Option<FileId>> {
        Ok(self.call()?.loops.get(&index).map(|(id, _)| *id))
    }

    fn forget_loop_size(&self, _index: u32, _image: FileId) -> io::Result<()> {
        self.call().map(drop)
    }

    fn zrams(&self) -> io::Result<Vec<(u32, u64)>> {
        Ok(self.call()?.zrams.iter().map(|(index, size)| (*index, *size)).collect())
    }

    fn add_zram(&self) -> io::Result<u32> {
        let mut state = self.call()?;
        let index = (0..).find(|index| !state.zrams.contains_key(index)).unwrap_or(0);
        state.zrams.insert(index, 0);
        Ok(index)
    }

    fn size_zram(&self, index: u32, size_bytes: u64) -> io::Result<()> {
        self.call()?.zrams.insert(index, size_bytes);
        Ok(())
    }

    fn remove_zram(&self, index: u32) -> io::Result<()> {
        self.call()?.zrams.remove(&index);
        Ok(())
    }

    fn facts(&self, path: &Path) -> io::Result<BlockFacts> {
        let state = self.call()?;
        if let Some(facts) = state.facts.get(path) {
            return Ok(facts.clone());
        }
        let name = path.to_string_lossy();
        let number = |prefix: &str| name.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok());
        if let Some((index, (id, size))) = number("/dev/loop").and_then(|index| Some((index, state.loops.get(&index)?)))
        {
            return Ok(BlockFacts { backing: Some(*id), ..blank(path, (7, index), *size) });
        }
        if let Some((index, size)) = number("/dev/zram").and_then(|index| Some((index, state.zrams.get(&index)?))) {
            return Ok(blank(path, (252, index), *size));
        }
        Ok(BlockFacts { kind: FileKind::Missing, ..blank(path, (0, 0), 0) })
    }

    fn lock(&self, path: &Path, _number: (u32, u32)) -> Result<DeviceLock, Refusal> {
        match self.call() {
            Ok(_) => Ok(DeviceLock::of_nothing()),
            Err(error) => Err(Refusal::Unexamined { path: path.to_owned(), words: error.to_string() }),
        }
    }

    fn hold(&self, path: &Path, number: (u32, u32)) -> Result<DeviceLock, Refusal> {
        self.lock(path, number)
    }

    fn queue_setting(&self, device: (u32, u32), name: &str) -> io::Result<String> {
        let key = (device, name.to_owned());
        self.call()?.queue.get(&key).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn set_queue_setting(&self, device: (u32, u32), name: &str, value: &str) -> io::Result<()> {
        self.call()?.queue.insert((device, name.to_owned()), value.to_owned());
        Ok(())
    }

    fn erase_signatures(&self, path: &Path, _device: (u32, u32)) -> io::Result<()> {
        self.call()?.erased.push(path.to_owned());
        Ok(())
    }

    fn read_ends(&self, path: &Path, _device: (u32, u32)) -> io::Result<()> {
        let unreadable = self.call()?.unreadable.contains(path);
        if unreadable { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
    }

    fn sample(&self, _path: &Path, _device: (u32, u32)) -> io::Result<Option<Sampled>> {
        Ok(None)
    }

    fn discard(&self, path: &Path, _device: (u32, u32)) -> io::Result<bool> {
        self.call()?.discarded.push(path.to_owned());
        Ok(true)
    }

    fn space(&self, _path: &Path) -> io::Result<Space> {
        while self.dead.load(Ordering::Relaxed) {
            std::thread::park();
        }
        Ok(Space { free_bytes: self.free_bytes.load(Ordering::Relaxed), total_bytes: 1 << 40 })
    }
}
