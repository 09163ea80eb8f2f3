//! The operations that age a filesystem. Pure: the same profile, sizes and seed give the same ones.
//!
//! A *lasting* file is there in the end: sizes, depths and ages are drawn so that all lasting files together have the profile's
//! distributions. A *passing* file is removed to make room for a later one. The disk is filled with passing files; then, as time
//! goes from 0 to 1, lasting files are made when their age says so and passing ones at a constant rate, and for each as many random
//! passing files are removed as needed. What remains fits the profile, between the holes that the passing files left.

use crate::random::Random;
use fstone_model::age::{Age, Class, TOLERANCE, class_of, weights};
use std::collections::VecDeque;

/// The longest write.
pub(super) const PIECE: u64 = 128 << 10;
/// What is overwritten or appended at a time in a profile that says how much: pgbench's PostgreSQL wrote 13 KiB in the mean.
const PAGE: u64 = 16 << 10;
/// How many files are looked at for one that is overwritten.
const TRIES: u32 = 1024;
/// And for one that is removed.
const CANDIDATES: u32 = 64;
/// How many files grow at a time.
const STREAMS: usize = 16;
/// What is remembered of a file takes some 60 bytes.
const MAXIMUM_FILES: f64 = (1u64 << 24) as f64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) directory: u32,
    pub(super) number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    /// Makes a directory of this number in another one.
    Directory {
        number: u32,
        parent: u32,
    },
    /// The first write makes the file, and the last one completes it: until then it is open.
    Write {
        name: Name,
        offset: u64,
        length: u64,
        makes: bool,
        ends: bool,
    },
    Truncate {
        name: Name,
        length: u64,
    },
    Rename {
        from: Name,
        to: Name,
    },
    Remove {
        name: Name,
    },
    /// Dates a file back by so many hours.
    Date {
        name: Name,
        hours: f64,
    },
    /// Makes everything durable.
    Sync,
}

#[derive(Debug, Clone, Copy)]
struct File {
    name: Name,
    size: u64,
    /// Its classes of size and depth.
    size_class: u16,
    depth: u16,
    /// The age of a lasting one, in hours.
    hours: Option<f64>,
    /// Whether it grows a page at a time.
    appended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Growing {
    file: File,
    written: u64,
    /// More than the size of one that is truncated in the end.
    until: u64,
}

#[derive(Debug)]
pub(super) struct Planner {
    random: Random,
    block: u64,
    sizes: Vec<Class>,
    ages: Vec<Class>,
    overwritten: Option<f64>,
    appended: Option<f64>,
    /// The directories of each class of depth.
    places: Vec<Vec<u32>>,
    lasting: Vec<File>,
    passing: Vec<File>,
    growing: Vec<Growing>,
    pending: VecDeque<Op>,
    of_lasting: [Quota; 2],
    of_passing: [Quota; 2],
    mean_bytes: f64,
    /// Files beyond those that the mean promises: large ones are so few that chance decides how many bytes files have.
    more_files: f64,
    /// Bytes that files have in the end.
    live_bytes: f64,
    /// Bytes that are written altogether.
    total_bytes: f64,
    time: f64,
    written_bytes: u64,
    /// In place, if the profile says how much.
    overwritten_bytes: u64,
    unsynced_bytes: u64,
    /// With those that still grow.
    lasting_bytes: u64,
    passing_bytes: u64,
    next_number: u32,
    /// Whether all lasting files were made once, and those that are added now may have any age.
    corrects: bool,
    /// No further lasting file fits.
    full: bool,
    drained: bool,
    makes_up: bool,
}

impl Planner {
    /// Writes `overwrites` times `capacity` bytes, and ends with files of `live` bytes, counted in whole blocks.
    pub(super) fn new(age: &Age, (capacity, live): (u64, u64), block: u64, seed: u64) -> Result<Self, String> {
        let profile = &age.profile;
        let mut random = Random::new(seed);
        let mut pending = VecDeque::new();
        let deepest = profile.depths.last().map_or(0, |depth| depth.depth);
        // The directories of the depth above; first, the root.
        let (mut above, mut number) = (vec![0], 0);
        let mut places = Vec::new();
        for depth in 0..=deepest {
            let class = profile.depths.iter().find(|class| class.depth == depth);
            if depth > 0 {
                let count = class.map_or(1, |class| class.directories.max(1));
                let made: Vec<u32> = (number + 1..=number + count).collect();
                for directory in &made {
                    let parent = above[random.below(above.len() as u64) as usize];
                    pending.push_back(Op::Directory { number: *directory, parent });
                }
                number += count;
                above = made;
            }
            places.extend(class.map(|_| above.clone()));
        }
        let sizes = expected(&profile.sizes, live as f64, block);
        let quotas = || [Quota::new(&weights(&sizes)), Quota::new(&profile.depth_weights())];
        let planner = Self {
            random,
            block,
            ages: profile.ages.clone(),
            overwritten: profile.overwritten,
            appended: profile.appended,
            places,
            lasting: Vec::new(),
            passing: Vec::new(),
            growing: Vec::new(),
            pending,
            of_lasting: quotas(),
            of_passing: quotas(),
            mean_bytes: mean(&sizes, block),
            sizes,
            more_files: 0.0,
            live_bytes: live as f64,
            total_bytes: (age.overwrites * capacity as f64).max(live as f64),
            time: 0.0,
            written_bytes: 0,
            overwritten_bytes: 0,
            unsynced_bytes: 0,
            lasting_bytes: 0,
            passing_bytes: 0,
            next_number: 0,
            corrects: false,
            full: false,
            drained: false,
            makes_up: false,
        };
        let cure = "make the device larger, or take a profile with smaller files";
        let sizes = &planner.sizes;
        let classes = || (0..sizes.len()).filter(|class| has_files(&sizes[*class]));
        let largest = classes().map(|class| sizes[class].up_to).fold(0.0, f64::max);
        if largest > live as f64 {
            return Err(format!("its largest files have {largest} bytes, and all files together {live}: {cure}"));
        }
        let smallest = classes().map(|class| class_floor(sizes, class)).min().unwrap_or(0).max(1);
        let most = (live as f64 * (1.0 + TOLERANCE) / smallest as f64).floor();
        if most * largest < live as f64 * (1.0 - TOLERANCE) {
            return Err(format!(
                "its files have {smallest} to {largest} bytes: {most} of them are too small and one more is too large for {live}: {cure}"
            ));
        }
        if planner.files() > MAXIMUM_FILES {
            return Err(format!("it has {:.0} files, and {MAXIMUM_FILES} are remembered at most", planner.files()));
        }
        Ok(planner)
    }

    /// How many files there will be.
    pub(super) fn files(&self) -> f64 {
        self.live_bytes / self.mean_bytes + self.more_files
    }

    /// As long as there are none.
    pub(super) fn directories(&self) -> usize {
        self.pending.len()
    }

    pub(super) const fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    pub(super) const fn overwritten_bytes(&self) -> u64 {
        self.overwritten_bytes
    }

    pub(super) const fn total_bytes(&self) -> f64 {
        self.total_bytes
    }

    pub(super) const fn live_bytes(&self) -> f64 {
        self.live_bytes
    }

    /// Bytes of the files as they are now, in whole blocks.
    pub(super) fn present_bytes(&self) -> u64 {
        let missing = |growing: &Growing| self.allocated(growing.until) - self.allocated(growing.written);
        self.lasting_bytes + self.passing_bytes - self.growing.iter().map(missing).sum::<u64>()
    }

    /// Those of files that are not complete.
    pub(super) fn growing_bytes(&self) -> u64 {
        self.growing.iter().map(|growing| self.allocated(growing.written)).sum()
    }

    /// How many bytes files are to have in the end, now that it is known how much space they take.
    pub(super) fn aim(&mut self, live_bytes: f64) {
        self.live_bytes = live_bytes.max(self.block as f64);
        self.corrects |= self.drained;
        (self.full, self.drained) = (false, false);
    }

    /// Files are complete: from now on, what was not written yet is written in their place.
    pub(super) const fn make_up(&mut self) {
        (self.makes_up, self.drained) = (true, false);
    }

    pub(super) fn next(&mut self) -> Option<Op> {
        while self.pending.is_empty() && !self.drained {
            self.step();
        }
        self.pending.pop_front()
    }

    fn allocated(&self, size: u64) -> u64 {
        size.next_multiple_of(self.block)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    fn step(&mut self) {
        // Files of real users are seconds apart, and the kernel writes one before it sees the next.
        if self.unsynced_bytes as f64 >= (self.live_bytes / 64.0).clamp((4 << 20) as f64, (64 << 20) as f64) {
            self.unsynced_bytes = 0;
            return self.pending.push_back(Op::Sync);
        }
        // Not always, because there may be empty files alone.
        if self.lacks_overwriting() && !self.chance(8) {
            return self.overwrite();
        }
        if self.made_until_now() >= self.files() {
            self.add_files();
        }
        let is_over =
            self.full || self.made_until_now() >= self.files() || self.lasting_bytes as f64 >= self.live_bytes;
        let grows = self.growing.len() == STREAMS || is_over || self.chance(2);
        if !self.growing.is_empty() && grows {
            let at = self.random.below(self.growing.len() as u64) as usize;
            return self.grow(at);
        }
        if is_over {
            let overwrites = self.makes_up && (self.written_bytes as f64) < self.total_bytes && self.has_data();
            return if overwrites { self.overwrite() } else { self.end() };
        }
        let may_write_more = self.may_write_more();
        if may_write_more && self.overwritten.is_none() && self.chance(8) {
            return self.overwrite();
        }
        let is_filling = self.written_to_files() < self.filled();
        let is_due = !is_filling && self.made_until_now() <= self.share_made(self.time) * self.files();
        if is_due || self.time >= 1.0 || !may_write_more || !self.make(None) {
            let hours = self.hours();
            if !self.make(Some(hours)) {
                self.full = !self.add_files();
            }
        }
    }

    /// As many are there as were planned, and they are smaller than planned: more are made, if some fit.
    fn add_files(&mut self) -> bool {
        let room = self.live_bytes - self.lasting_bytes as f64;
        let fits = |class: &usize| {
            let Class { up_to, weight } = self.sizes[*class];
            weight > 0.0 && up_to > 0.0 && class_floor(&self.sizes, *class).max(self.block) as f64 <= room
        };
        let adds = room > self.live_bytes / 256.0 && (0..self.sizes.len()).any(|class| fits(&class));
        if adds {
            self.more_files += (room / self.mean_bytes).max(1.0);
        }
        adds
    }

    /// Whether less was overwritten until now than the profile says.
    fn lacks_overwriting(&self) -> bool {
        let wanted = self.overwritten.unwrap_or(0.0) * self.written_bytes as f64;
        (self.overwritten_bytes as f64) < wanted && self.may_write_more()
    }

    /// What is written but for the share that is overwritten; each lasting file at least.
    fn bytes_for_files(&self) -> f64 {
        (self.total_bytes * (1.0 - self.overwritten.unwrap_or(0.0))).max(self.live_bytes)
    }

    const fn written_to_files(&self) -> f64 {
        (self.written_bytes - self.overwritten_bytes) as f64
    }

    /// What passing files fill before time begins.
    fn filled(&self) -> f64 {
        (self.bytes_for_files() - self.live_bytes).min(self.live_bytes)
    }

    fn has_data(&self) -> bool {
        self.growing.is_empty() && self.lasting_bytes + self.passing_bytes > 0
    }

    /// Whether more can be written than the lasting files that are not there yet.
    fn may_write_more(&self) -> bool {
        let lasting = self.growing.iter().filter(|growing| growing.file.hours.is_some());
        let missing: u64 = lasting.map(|growing| growing.until - growing.written).sum();
        let to_write = self.live_bytes - self.lasting_bytes as f64 + missing as f64;
        self.written_bytes as f64 + to_write < self.total_bytes
    }

    /// The end: passing files are removed, and lasting ones for which there is no room.
    fn end(&mut self) {
        let name = if let Some(name) = self.take_passing() {
            name
        } else {
            let excess = self.lasting_bytes as f64 - self.live_bytes;
            if excess <= self.mean_bytes || self.lasting.is_empty() {
                self.settle_ages();
                self.pending.push_back(Op::Sync);
                self.drained = true;
                return;
            }
            let at = self.superfluous(excess);
            let file = self.lasting.swap_remove(at);
            self.lasting_bytes -= self.allocated(file.size);
            self.of_lasting[0].counts[usize::from(file.size_class)] -= 1;
            self.of_lasting[1].counts[usize::from(file.depth)] -= 1;
            file.name
        };
        self.pending.push_back(Op::Remove { name });
    }

    /// A lasting file that is to go: of some that are no larger than what is too much, which would leave a hole, the one whose classes have
    /// most beyond their shares. Chance alone changes the distribution of a few hundred files by more than is tolerated.
    fn superfluous(&mut self, excess: f64) -> usize {
        let count = self.lasting.len() as u64;
        let (mut chosen, mut most) = (self.random.below(count) as usize, f64::NEG_INFINITY);
        let [sizes, depths] = &self.of_lasting;
        let drawn = sizes.drawn() as f64;
        let beyond = |quota: &Quota, class: usize| quota.counts[class] as f64 - quota.shares[class] * drawn;
        let mut candidates = CANDIDATES;
        for _ in 0..TRIES {
            let at = self.random.below(count) as usize;
            let file = self.lasting[at];
            if file.size.next_multiple_of(self.block) as f64 > excess {
                continue;
            }
            let surplus = beyond(sizes, file.size_class.into()) + beyond(depths, file.depth.into());
            if surplus > most {
                (chosen, most) = (at, surplus);
            }
            candidates -= 1;
            if candidates == 0 {
                break;
            }
        }
        chosen
    }

    /// A passing file that is to go; if there is no other, one that is not complete.
    fn take_passing(&mut self) -> Option<Name> {
        let (name, size) = if self.passing.is_empty() {
            let at = self.growing.iter().position(|growing| growing.file.hours.is_none())?;
            let Growing { file, until, .. } = self.growing.swap_remove(at);
            (file.name, until)
        } else {
            let at = self.random.below(self.passing.len() as u64) as usize;
            let file = self.passing.swap_remove(at);
            (file.name, file.size)
        };
        self.passing_bytes -= self.allocated(size);
        Some(name)
    }

    const fn bytes_of(&mut self, hours: Option<f64>) -> &mut u64 {
        if hours.is_some() { &mut self.lasting_bytes } else { &mut self.passing_bytes }
    }

    fn made_until_now(&self) -> f64 {
        self.of_lasting[0].drawn() as f64
    }

    /// The share of the lasting files that are made by a time.
    fn share_made(&self, time: f64) -> f64 {
        let (oldest, sum) = self.oldest_and_sum();
        let age = (1.0 - time) * oldest;
        let mut from = 0.0;
        let mut older = 0.0;
        for Class { up_to, weight } in &self.ages {
            if *up_to > age {
                older += weight * (up_to - age.max(from)) / (up_to - from);
            }
            from = *up_to;
        }
        older / sum
    }

    fn oldest_and_sum(&self) -> (f64, f64) {
        (self.ages.last().map_or(1.0, |class| class.up_to), self.ages.iter().map(|class| class.weight).sum())
    }

    /// The age of the next lasting file.
    fn hours(&mut self) -> f64 {
        let made = if self.corrects { self.random.unit() } else { self.made_until_now() / self.files() };
        self.hours_at(made)
    }

    /// The inverse of [`Self::share_made`], as an age.
    fn hours_at(&self, made: f64) -> f64 {
        let (_, sum) = self.oldest_and_sum();
        let mut younger = (1.0 - made).clamp(0.0, 1.0) * sum;
        let mut from = 0.0;
        for Class { up_to, weight } in &self.ages {
            if *weight > 0.0 && younger <= *weight {
                return from + (up_to - from) * younger / weight;
            }
            younger -= weight;
            from = *up_to;
        }
        from
    }

    /// Moves lasting files to the classes of age that lack some, in the order in which they were made. How many files there would be was
    /// an estimate when they were: each correction of it skips ages or repeats them, and one near the end leaves the youngest out.
    fn settle_ages(&mut self) {
        let mut births: Vec<(f64, usize)> =
            self.lasting.iter().map(|file| file.hours.unwrap_or(0.0)).zip(0..).collect();
        births.sort_by(|one, other| other.0.total_cmp(&one.0));
        let count = births.len() as f64;
        for (rank, (hours, at)) in births.into_iter().enumerate() {
            let settled = self.hours_at((rank as f64 + 0.5) / count);
            if class_of(&self.ages, settled) != class_of(&self.ages, hours) {
                let file = &mut self.lasting[at];
                file.hours = Some(settled);
                self.pending.push_back(Op::Date { name: file.name, hours: settled });
            }
        }
    }

    const fn wrote(&mut self, bytes: u64) {
        self.written_bytes += bytes;
        self.unsynced_bytes += bytes;
    }

    /// Time passes with what is written, but for the share that is overwritten.
    fn pass(&mut self, bytes: u64) {
        let filled = self.filled();
        if self.written_to_files() > filled {
            // How many bytes are written in all time: lasting files by their ages, passing ones evenly.
            let step = 1.0 / 4096.0;
            let of_lasting = (self.share_made(self.time + step) - self.share_made(self.time)) / step * self.live_bytes;
            let of_passing = (self.bytes_for_files() - self.live_bytes - filled).max(0.0);
            self.time += bytes as f64 / (of_lasting + of_passing).max(self.live_bytes / 1024.0);
            self.time = self.time.min(1.0);
        }
    }

    /// Begins a file, if there is room beside the lasting ones; passing ones are removed for it.
    fn make(&mut self, hours: Option<f64>) -> bool {
        let room = (self.live_bytes - self.lasting_bytes as f64).max(0.0);
        // The last one may take a little more than what is left.
        let room = if hours.is_some() { room + self.live_bytes / 256.0 } else { room };
        let (sizes, block) = (&self.sizes, self.block);
        let fits = |class: usize| class_floor(sizes, class).max(block) as f64 <= room;
        let files = self.files();
        let quotas = if hours.is_some() { &mut self.of_lasting } else { &mut self.of_passing };
        // Lasting files are drawn without replacement, so that in the end none is missing.
        let total = if hours.is_some() { files } else { quotas[0].drawn() as f64 + SLACK };
        let Some(size_class) = quotas[0].draw(total, &mut self.random, fits) else { return false };
        let depth = quotas[1].draw(total + 1.0, &mut self.random, |_| true).unwrap_or_default();
        let within = quotas[0].within(size_class);
        let size = size_in(sizes, size_class, within).min((room as u64 / block).max(1) * block);
        let name = self.name_at(depth);
        let appended = self.appended.is_some_and(|share| self.random.unit() < share);
        let file = File { name, size, size_class: size_class as u16, depth: depth as u16, hours, appended };
        // Some are longer until they are complete.
        let longer = size + size / 4;
        let is_longer = size >= 2 * self.block && self.may_write_more() && self.chance(16);
        let has_room = (self.lasting_bytes + self.allocated(longer)) as f64 <= self.live_bytes;
        let until = if is_longer && has_room { longer } else { size };
        let bytes = self.allocated(until);
        while (self.lasting_bytes + self.passing_bytes + bytes) as f64 > self.live_bytes {
            let Some(name) = self.take_passing() else { break };
            self.pending.push_back(Op::Remove { name });
        }
        *self.bytes_of(hours) += bytes;
        self.growing.push(Growing { file, written: 0, until });
        self.grow(self.growing.len() - 1);
        true
    }

    fn name_at(&mut self, depth: usize) -> Name {
        let places = &self.places[depth];
        self.next_number = self.next_number.wrapping_add(1);
        Name { directory: places[self.random.below(places.len() as u64) as usize], number: self.next_number }
    }

    fn grow(&mut self, at: usize) {
        let Growing { mut file, written, mut until } = self.growing[at];
        let mut length = (until - written).min(if file.appended { PAGE } else { PIECE });
        // What is written in all is as much as was planned: no more is written than lasting files lack, however long others were to be.
        let lacking = if file.hours.is_some() { file.size } else { 0 }.max(written + length);
        if lacking < until && !self.may_write_more() {
            *self.bytes_of(file.hours) -= self.allocated(until) - self.allocated(lacking);
            (until, file.size) = (lacking, file.size.min(lacking));
            self.growing[at] = Growing { file, written, until };
        }
        // Some small ones are appended to.
        if written == 0 && length > self.block && self.chance(8) {
            length = (length / 2).next_multiple_of(self.block).min(length);
        }
        let (makes, ends) = (written == 0, written + length == until);
        self.pending.push_back(Op::Write { name: file.name, offset: written, length, makes, ends });
        // An empty file counts, too: otherwise a profile of them would never end.
        self.wrote(length.max(1));
        self.pass(length.max(1));
        if !ends {
            self.growing[at].written += length;
            return;
        }
        self.growing.swap_remove(at);
        if until > file.size {
            let given_back = self.allocated(until) - self.allocated(file.size);
            *self.bytes_of(file.hours) -= given_back;
            self.pending.push_back(Op::Truncate { name: file.name, length: file.size });
        }
        if self.chance(16) {
            let to = self.name_at(usize::from(file.depth));
            self.pending.push_back(Op::Rename { from: file.name, to });
            file.name = to;
        }
        match file.hours {
            Some(hours) => {
                self.pending.push_back(Op::Date { name: file.name, hours });
                self.lasting.push(file);
            }
            None => self.passing.push(file),
        }
    }

    /// Writes a part of a file again, in its place.
    fn overwrite(&mut self) {
        let (longest, tries) = if self.overwritten.is_some() { (PAGE, TRIES) } else { (PIECE / 2, 1) };
        let largest = self.sizes.last().map_or(0.0, |class| class.up_to) as u64;
        let both = (self.lasting.len() + self.passing.len()) as u64;
        let mut found = None;
        for at in 0..tries {
            let drawn = self.random.below(both) as usize;
            found = self.lasting.get(drawn).or_else(|| self.passing.get(drawn - self.lasting.len())).copied();
            // Every page is as likely as any other.
            if found.is_none_or(|file| at + 1 == tries || self.random.below(largest) < file.size) {
                break;
            }
        }
        let Some(file) = found.filter(|file| file.size > 0) else { return };
        let offset = self.random.below(self.allocated(file.size) / self.block) * self.block;
        let most = (file.size - offset).min(longest);
        self.pending.push_back(Op::Write { name: file.name, offset, length: most, makes: false, ends: true });
        self.wrote(most);
        if self.overwritten.is_some() {
            self.overwritten_bytes += most;
        } else {
            self.pass(most);
        }
        if let Some(hours) = file.hours {
            self.pending.push_back(Op::Date { name: file.name, hours });
        }
    }
}

fn has_files(class: &Class) -> bool {
    class.weight > 0.0 && class.up_to > 0.0
}

/// The bytes that a file takes in the mean.
fn mean(sizes: &[Class], block: u64) -> f64 {
    let of_class = |class: usize| {
        let size = |at: u64| size_in(sizes, class, (at as f64 + 0.5) / 64.0).next_multiple_of(block) as f64;
        sizes[class].weight * (0..64).map(size).sum::<f64>() / 64.0
    };
    (0..sizes.len()).map(of_class).sum::<f64>() / weights(sizes).iter().sum::<f64>()
}

/// How many files with the sizes of a profile have so many bytes, in blocks of 4 KiB.
pub fn expected_files(age: &Age, live_bytes: f64) -> f64 {
    const BLOCK: u64 = 4096;
    live_bytes / mean(&expected(&age.profile.sizes, live_bytes, BLOCK), BLOCK)
}

/// Most of the files that may be missing because they are too large, as a share.
const MOST_LEFT_OUT: f64 = TOLERANCE / 5.0;

/// The classes, without those of the few largest files of which less than half a file is expected among so many bytes.
fn expected(sizes: &[Class], live_bytes: f64, block: u64) -> Vec<Class> {
    let sum = |sizes: &[Class]| weights(sizes).iter().sum::<f64>();
    let least = sum(sizes) * (1.0 - MOST_LEFT_OUT);
    let mut sizes = sizes.to_vec();
    while let Some(largest) = sizes.iter().rposition(has_files)
        && sizes[..largest].iter().any(has_files)
        && sum(&sizes[..largest]) >= least
        && live_bytes / mean(&sizes, block) * sizes[largest].weight / sum(&sizes) < 0.5
    {
        sizes.truncate(largest);
    }
    sizes
}

/// The smallest size of a class.
fn class_floor(sizes: &[Class], class: usize) -> u64 {
    if sizes[class].up_to == 0.0 { 0 } else { class.checked_sub(1).map_or(0, |before| sizes[before].up_to as u64) + 1 }
}

/// A size of a class, at a point between its smallest and its largest one. A square, because small ones are more frequent, and because
/// every machine has the same.
fn size_in(sizes: &[Class], class: usize, at: f64) -> u64 {
    let (from, to) = (class_floor(sizes, class) as f64, sizes[class].up_to);
    if to == 0.0 { 0 } else { (from + (to - from) * at * at).round() as u64 }
}

/// Draws classes so that their counts stay near their shares.
#[derive(Debug)]
struct Quota {
    shares: Vec<f64>,
    counts: Vec<u64>,
}

/// The counts of passing files may stray from their shares by so many.
const SLACK: f64 = 32.0;
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl Quota {
    fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        Self { shares: weights.iter().map(|weight| weight / sum).collect(), counts: vec![0; weights.len()] }
    }

    fn drawn(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A class that has fewer than its share of a total.
    fn draw(&mut self, total: f64, random: &mut Random, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let wanted = |class: usize| {
            if fits(class) { (total * self.shares[class] - self.counts[class] as f64).max(0.0) } else { 0.0 }
        };
        let sum: f64 = (0..self.shares.len()).map(wanted).sum();
        let mut at = random.unit() * sum;
        let mut drawn = None;
        for class in (0..self.shares.len()).filter(|class| wanted(*class) > 0.0) {
            drawn = Some(class);
            at -= wanted(class);
            if at < 0.0 {
                break;
            }
        }
        self.counts[drawn?] += 1;
        drawn
    }

    /// Where in its class the last one drawn lies: evenly, however few there are.
    fn within(&self, class: usize) -> f64 {
        (self.counts[class] as f64 * GOLDEN).fract()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use fstone_model::age::{Depth, Profile, compare};
    use std::collections::{HashMap, HashSet};

    /// Agrawal's, as Geriatrix has them.
    pub(in super::super) fn agrawal() -> Age {
        let classes =
            |rows: &[(f64, f64)]| rows.iter().map(|(up_to, weight)| Class { up_to: *up_to, weight: *weight }).collect();
        let sizes = [1.0, 7.0, 16.0, 40.0, 50.0, 46.0, 35.0, 20.0, 10.0, 4.0, 1.0];
        let sizes: Vec<(f64, f64)> = (0..).map(|at| 8.0 * 4f64.powi(at)).zip(sizes).collect();
        let ages = [
            (10.74, 1.0),
            (31.0, 2.0),
            (85.98, 8.0),
            (240.0, 20.0),
            (687.87, 44.0),
            (1945.59, 75.0),
            (5502.98, 144.0),
            (15768.0, 146.0),
            (44023.9, 23.0),
            (122_640.0, 1.0),
        ];
        let depths = [(1, 1.0, 1), (2, 2.0, 5), (3, 14.0, 13), (5, 23.0, 30)];
        let depths = depths.map(|(depth, weight, directories)| Depth { depth, weight, directories }).to_vec();
        let profile = Profile {
            name: "agrawal".into(),
            sizes: classes(&sizes),
            ages: classes(&ages),
            depths,
            ..Profile::default()
        };
        Age { profile, utilization: 0.8, overwrites: 3.0, compressible: 0.0, seed: None }
    }

    /// A filesystem that remembers lengths and dates, and refuses what cannot be.
    #[derive(Default)]
    struct Files {
        lengths: HashMap<(u32, u32), u64>,
        hours: HashMap<(u32, u32), f64>,
        depths: HashMap<u32, u32>,
        peak_bytes: u64,
        written_bytes: u64,
        looked_bytes: u64,
        operations: HashSet<&'static str>,
    }

    impl Files {
        fn apply(&mut self, op: Op) {
            let key = |name: Name| (name.directory, name.number);
            let kind = match op {
                Op::Directory { number, parent } => {
                    let depth = if parent == 0 { 0 } else { self.depths[&parent] };
                    assert!(self.depths.insert(number, depth + 1).is_none());
                    "mkdir"
                }
                Op::Write { name, offset, length, makes, .. } => {
                    assert!(length <= PIECE);
                    let known = self.lengths.contains_key(&key(name));
                    assert_ne!(known, makes);
                    let end = self.lengths.entry(key(name)).or_default();
                    assert!(offset <= *end, "no holes");
                    let kind = if makes {
                        "make"
                    } else if offset + length > *end {
                        "append"
                    } else {
                        "overwrite"
                    };
                    *end = (*end).max(offset + length);
                    self.written_bytes += length;
                    kind
                }
                Op::Truncate { name, length } => {
                    let end = self.lengths.get_mut(&key(name)).expect("it is there");
                    assert!(*end > length);
                    *end = length;
                    "truncate"
                }
                Op::Rename { from, to } => {
                    let length = self.lengths.remove(&key(from)).expect("it is there");
                    assert!(self.lengths.insert(key(to), length).is_none());
                    "rename"
                }
                Op::Remove { name } => {
                    self.hours.remove(&key(name));
                    self.lengths.remove(&key(name)).expect("it is there");
                    "remove"
                }
                Op::Date { name, hours } => {
                    self.hours.insert(key(name), hours);
                    "date"
                }
                Op::Sync => "sync",
            };
            if self.operations.insert(kind) || self.written_bytes >= self.looked_bytes + (1 << 20) {
                self.looked_bytes = self.written_bytes;
                self.peak_bytes = self.peak_bytes.max(self.bytes());
            }
        }

        fn bytes(&self) -> u64 {
            self.lengths.values().map(|length| length.next_multiple_of(4096)).sum()
        }
    }

    fn carried_out(age: &Age, capacity: u64, seed: u64) -> (Planner, Files) {
        let live = (capacity as f64 * age.utilization) as u64;
        let mut planner = Planner::new(age, (capacity, live), 4096, seed).expect("it is possible");
        let mut files = Files::default();
        while let Some(op) = planner.next() {
            files.apply(op);
        }
        (planner, files)
    }

    #[test]
    fn what_remains_is_what_the_profile_asks_for() {
        let age = agrawal();
        let (capacity, live) = (1u64 << 30, (0.8 * (1u64 << 30) as f64));
        let (mut planner, mut files) = carried_out(&age, capacity, 7);
        let near = |files: &Files, live: f64| {
            let (sizes, ages) = (&age.profile.sizes, &age.profile.ages);
            let mut counts = (vec![0; sizes.len()], vec![0; ages.len()], vec![0; 4]);
            for (name, length) in &files.lengths {
                counts.0[class_of(sizes, *length as f64)] += 1;
                counts.1[class_of(ages, files.hours[name])] += 1;
                let depth = files.depths[&name.0];
                counts.2
                    [age.profile.depths.iter().position(|one| one.depth == depth).expect("a depth of the profile")] +=
                    1;
            }
            for (what, (chi, share)) in [
                ("sizes", compare(&counts.0, &weights(sizes))),
                ("ages", compare(&counts.1, &weights(ages))),
                ("depths", compare(&counts.2, &age.profile.depth_weights())),
            ] {
                assert!(share < 0.02 && chi < 20.0, "{what}: χ² {chi}, {share} of the files elsewhere: {counts:?}");
            }
            let share = files.bytes() as f64 / live;
            assert!((0.98..1.02).contains(&share), "{share}");
            assert_eq!(files.hours.len(), files.lengths.len(), "every file has its age");
        };
        near(&files, live);
        let share = files.written_bytes as f64 / (3.0 * capacity as f64);
        assert!((0.95..1.1).contains(&share), "{share} of what was to be written");
        assert!((files.peak_bytes as f64) < 1.05 * live, "{} at once", files.peak_bytes);
        let all = ["mkdir", "make", "append", "overwrite", "truncate", "rename", "remove", "date", "sync"];
        assert_eq!(files.operations, HashSet::from(all));
        assert_eq!(planner.present_bytes(), files.bytes());
        // Metadata takes more, or less, than was thought.
        for live in [0.9 * live, 1.05 * live] {
            planner.aim(live);
            while let Some(op) = planner.next() {
                files.apply(op);
            }
            near(&files, live);
        }
    }

    /// Copy-on-write keeps what was overwritten, and that is known in the end: a third of a few hundred files may be too much.
    #[test]
    fn a_few_files_that_are_too_many_go_by_their_classes() {
        let class = |up_to, weight| Class { up_to, weight };
        let mut age = Age { utilization: 0.4, overwrites: 0.5, ..agrawal() };
        age.profile.sizes = vec![class(0.0, 1.0), class(4096.0, 4.0), class(65536.0, 6.0), class(524_288.0, 2.0)];
        for seed in 0..20 {
            let (mut planner, mut files) = carried_out(&age, 128 << 20, seed);
            planner.aim(planner.live_bytes() * 0.65);
            while let Some(op) = planner.next() {
                files.apply(op);
            }
            let mut counts = vec![0; 4];
            files.lengths.values().for_each(|length| counts[class_of(&age.profile.sizes, *length as f64)] += 1);
            let (_, share) = compare(&counts, &weights(&age.profile.sizes));
            assert!(share < 0.02, "seed {seed}: {share} of the files elsewhere: {counts:?}");
        }
    }

    /// A few large files fill as much of the disk as many small ones, those that are not complete included.
    #[test]
    fn no_more_is_there_at_once_than_what_remains_nor_written_than_planned() {
        let class = |up_to: f64, weight| Class { up_to, weight };
        for (sizes, utilization, overwrites) in [
            (vec![class((10u64 << 20) as f64, 0.0), class((12u64 << 20) as f64, 1.0)], 0.8, 0.8),
            (vec![class((100u64 << 20) as f64, 0.0), class((128u64 << 20) as f64, 1.0)], 0.8, 10.0),
            (vec![class((1u64 << 20) as f64, 5.0), class((512u64 << 20) as f64, 1.0)], 0.9, 3.0),
            (vec![class((1u64 << 20) as f64, 50.0), class((256u64 << 20) as f64, 1.0)], 0.8, 1.0),
        ] {
            let mut age = Age { utilization, overwrites, ..agrawal() };
            age.profile.sizes = sizes;
            let live = utilization * (1u64 << 30) as f64;
            let (planner, files) = carried_out(&age, 1 << 30, 7);
            assert!((files.peak_bytes as f64) < 1.01 * live, "{} of {live}: {:?}", files.peak_bytes, age.profile.sizes);
            let share = files.written_bytes as f64 / planner.total_bytes();
            assert!((0.98..1.02).contains(&share), "{share} of what was to be written: {:?}", age.profile.sizes);
            assert_eq!(planner.present_bytes(), files.bytes());
        }
    }

    /// Chance decides whether the one file that has a third of all bytes is drawn; the others make up for it.
    #[test]
    fn files_fill_the_disk_however_few_the_large_ones_are() {
        let mut age = Age { overwrites: 1.0, ..agrawal() };
        let mib = |count: u64| (count << 20) as f64;
        age.profile.sizes = [(8192.0, 1000.0), (131_072.0, 280.0), (mib(16), 25.0), (mib(64), 2.0), (mib(256), 1.0)]
            .map(|(up_to, weight)| Class { up_to, weight })
            .to_vec();
        for seed in 0..16 {
            let (_, files) = carried_out(&age, 600 << 20, seed);
            let share = files.bytes() as f64 / (0.8 * mib(600));
            assert!((0.98..1.02).contains(&share), "{share} with seed {seed}");
            let mut counts = vec![0; age.profile.sizes.len()];
            files.lengths.values().for_each(|length| counts[class_of(&age.profile.sizes, *length as f64)] += 1);
            let (_, elsewhere) = compare(&counts, &weights(&age.profile.sizes));
            assert!(elsewhere < 0.02, "{elsewhere} of the files elsewhere with seed {seed}: {counts:?}");
        }
    }

    /// What metadata and preallocation take is found out on the way, and some of it is given back late.
    #[test]
    fn ages_are_the_profiles_whenever_the_plan_is_corrected() {
        let (age, capacity) = (agrawal(), 1u64 << 28);
        let live = 0.8 * capacity as f64;
        for (when, by) in [(0.2, 0.85), (0.2, 1.1), (0.6, 0.85), (0.6, 1.1), (0.97, 0.85), (0.97, 1.1), (0.995, 0.9)] {
            let mut planner = Planner::new(&age, (capacity, live as u64), 4096, 7).expect("it is possible");
            let (mut files, mut is_corrected) = (Files::default(), false);
            let mut makes_up = [true].into_iter();
            while let Some(op) = planner.next().or_else(|| {
                makes_up.next()?;
                planner.make_up();
                planner.next()
            }) {
                files.apply(op);
                if !is_corrected && planner.written_bytes() as f64 > when * planner.total_bytes() {
                    planner.aim(by * live);
                    is_corrected = true;
                }
            }
            let mut counts = vec![0; age.profile.ages.len()];
            files.hours.values().for_each(|hours| counts[class_of(&age.profile.ages, *hours)] += 1);
            let (_, elsewhere) = compare(&counts, &weights(&age.profile.ages));
            assert!(elsewhere < 0.02, "{by} at {when}: {elsewhere} of the files elsewhere: {counts:?}");
            let share = files.written_bytes as f64 / planner.total_bytes();
            assert!((0.99..1.04).contains(&share), "{by} at {when}: {share} of what was to be written");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        let ops = |seed| {
            let mut planner = Planner::new(&agrawal(), (64 << 20, 50 << 20), 4096, seed).expect("it is possible");
            std::iter::from_fn(|| planner.next()).collect::<Vec<_>>()
        };
        let first = ops(1);
        assert!(first.len() > 3000 && first == ops(1) && first != ops(2), "{}", first.len());
    }

    /// As a database does: large files, most of whose bytes are overwritten in place.
    #[test]
    fn as_much_is_overwritten_in_place_as_the_profile_says() {
        let mut age = agrawal();
        age.profile.sizes[10].weight = 4.0;
        (age.profile.overwritten, age.profile.appended, age.overwrites) = (Some(0.8), Some(0.5), 10.0);
        let (mut planner, mut files) =
            (Planner::new(&age, (128 << 20, 100 << 20), 4096, 3).expect("it is possible"), Files::default());
        let (mut overwritten, mut large, mut pages, mut appends) = (0.0, 0.0, 0, 0);
        while let Some(op) = planner.next() {
            if let Op::Write { name, offset, length, makes, .. } = op {
                let end = files.lengths.get(&(name.directory, name.number)).copied().unwrap_or(0);
                if !makes && offset < end {
                    overwritten += length as f64;
                    large += if end > 2 << 20 { length as f64 } else { 0.0 };
                    assert!(length <= PAGE);
                } else if !makes {
                    appends += 1;
                    pages += u32::from(length <= PAGE);
                }
            }
            files.apply(op);
        }
        let share = overwritten / files.written_bytes as f64;
        assert!(
            (0.76..0.84).contains(&share) && large / overwritten > 0.4,
            "{share} in place, {large} of it in large files"
        );
        assert!(pages > appends / 2, "{pages} of {appends}");
        let (bytes, of) = (files.bytes() as f64, planner.live_bytes());
        assert!((0.95..1.05).contains(&(bytes / of)) && files.written_bytes as f64 / planner.total_bytes() < 1.05);
    }

    #[test]
    fn filling_alone_and_files_that_are_too_large() {
        let mut age = agrawal();
        age.overwrites = 0.8;
        let (_, files) = carried_out(&age, 1 << 30, 3);
        assert!(!files.lengths.is_empty() && files.written_bytes < 1 << 30);
        // Of the largest files, one in 230 of the profile, this disk would have a third of one.
        let (_, files) = carried_out(&age, 8 << 20, 1);
        let bytes = files.bytes() as f64;
        assert!((0.98..1.02).contains(&(bytes / (0.8 * (8u64 << 20) as f64))), "{bytes}");
        age.profile.sizes[10].weight = 1000.0;
        let refused = Planner::new(&age, (8 << 20, 6 << 20), 4096, 1).expect_err("8 MiB files in 6 MiB");
        assert!(refused.contains("largest files have 8388608 bytes"), "{refused}");
        age.profile.sizes = vec![(200 << 20, 0.0), (210 << 20, 1.0)]
            .into_iter()
            .map(|(up_to, weight)| Class { up_to: f64::from(up_to), weight })
            .collect();
        let refused = Planner::new(&age, (400 << 20, 300 << 20), 4096, 1).expect_err("one is too little, two too much");
        assert!(refused.contains("1 of them are too small and one more is too large"), "{refused}");
    }
}
