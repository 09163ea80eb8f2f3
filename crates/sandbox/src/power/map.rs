//! What a disk holds, sector by sector: what was there when its log began, data of the log, zeros, or what was written since.

use super::log::{Change, Log, SECTOR_BYTES, copy_range, copy_sparsely, make_hole};
use fstone_files::nameless;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    /// The log's file, from this byte on.
    Log(u64),
    Zeros,
    /// The same place of the disk as it was when the log began.
    Base,
    /// The same place of the scratch file.
    Scratch,
}

impl Source {
    const fn after(self, sectors: u64) -> Self {
        match self {
            Self::Log(at) => Self::Log(at + sectors * SECTOR_BYTES),
            other => other,
        }
    }
}

/// A disk's content; what it held when the log began where nothing was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    /// First sector → (end, source). Ranges do not overlap.
    extents: BTreeMap<u64, (u64, Source)>,
}

impl Content {
    /// Makes a change to some of the sectors of a request that began at `first`.
    pub(super) fn change(&mut self, change: Change, first: u64, sectors: Range<u64>) {
        let source = match change {
            Change::Write { data_at } => Source::Log(data_at).after(sectors.start - first),
            Change::Zero => Source::Zeros,
        };
        self.set(sectors, source);
    }

    fn set(&mut self, sectors: Range<u64>, source: Source) {
        if sectors.is_empty() {
            return;
        }
        // The extent that reaches into the range from before keeps its beginning, and its end where it goes beyond.
        if let Some((&start, &(end, old))) = self.extents.range(..sectors.start).next_back()
            && end > sectors.start
        {
            self.extents.insert(start, (sectors.start, old));
            if end > sectors.end {
                self.extents.insert(sectors.end, (end, old.after(sectors.end - start)));
            }
        }
        let inside: Vec<u64> = self.extents.range(sectors.clone()).map(|(&start, _)| start).collect();
        for start in inside {
            let Some((end, old)) = self.extents.remove(&start) else { continue };
            if end > sectors.end {
                self.extents.insert(sectors.end, (end, old.after(sectors.end - start)));
            }
        }
        self.extents.insert(sectors.start, (sectors.end, source));
    }

    /// The pieces of a range, in order and without gaps.
    fn pieces(&self, sectors: Range<u64>) -> Vec<(Range<u64>, Source)> {
        let mut pieces = Vec::new();
        let mut at = sectors.start;
        let before = self.extents.range(..sectors.start).next_back().map(|(&start, _)| start);
        for (&start, &(end, source)) in self.extents.range(before.unwrap_or(sectors.start)..sectors.end) {
            if end <= at {
                continue;
            }
            if start > at {
                pieces.push((at..start, Source::Base));
                at = start;
            }
            let until = end.min(sectors.end);
            pieces.push((at..until, source.after(at - start)));
            at = until;
        }
        if at < sectors.end {
            pieces.push((at..sectors.end, Source::Base));
        }
        pieces
    }
}

impl Content {
    /// Where the two may differ, in order. What was written to a scratch file always may, and so may data of the log unless both
    /// are of the same.
    pub(super) fn differing(&self, other: &Self, same_log: bool) -> Vec<Range<u64>> {
        let end = |content: &Self| content.extents.values().next_back().map_or(0, |(end, _)| *end);
        let whole = 0..end(self).max(end(other));
        let (ours, theirs) = (self.pieces(whole.clone()), other.pieces(whole.clone()));
        let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
        let mut differing: Vec<Range<u64>> = Vec::new();
        let mut at = whole.start;
        while let (Some((our_range, our_source)), Some((their_range, their_source))) = (ours.peek(), theirs.peek()) {
            let until = our_range.end.min(their_range.end);
            let (our, their) = (our_source.after(at - our_range.start), their_source.after(at - their_range.start));
            let is_same = our == their
                && match our {
                    Source::Scratch => false,
                    Source::Log(_) => same_log,
                    Source::Zeros | Source::Base => true,
                };
            if !is_same {
                match differing.last_mut() {
                    Some(last) if last.end == at => last.end = until,
                    _ => differing.push(at..until),
                }
            }
            at = until;
            let _ = ours.next_if(|(range, _)| range.end == until);
            let _ = theirs.next_if(|(range, _)| range.end == until);
        }
        differing
    }
}

/// A content that a disk shows. What is written to it goes to a scratch file, and is gone with it.
#[derive(Debug)]
pub(crate) struct Shown {
    content: Content,
    base: Arc<File>,
    data: Arc<File>,
    scratch: File,
}

impl Shown {
    pub(super) fn new(content: Content, log: &Log, directory: &Path) -> io::Result<Self> {
        let (base, data) = (Arc::clone(&log.base), Arc::clone(&log.data));
        Ok(Self { content, base, data, scratch: nameless(directory)? })
    }

    /// Reads whole sectors.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let first = at / SECTOR_BYTES;
        let end = first + buffer.len() as u64 / SECTOR_BYTES;
        for (sectors, source) in self.content.pieces(first..end) {
            let from = ((sectors.start - first) * SECTOR_BYTES) as usize;
            let piece = &mut buffer[from..from + ((sectors.end - sectors.start) * SECTOR_BYTES) as usize];
            match source {
                Source::Log(data_at) => self.data.read_exact_at(piece, data_at)?,
                Source::Base => self.base.read_exact_at(piece, sectors.start * SECTOR_BYTES)?,
                Source::Scratch => self.scratch.read_exact_at(piece, sectors.start * SECTOR_BYTES)?,
                Source::Zeros => piece.fill(0),
            }
        }
        Ok(())
    }

    /// Writes whole sectors.
    pub(crate) fn write_all_at(&mut self, piece: &[u8], at: u64) -> io::Result<()> {
        self.scratch.write_all_at(piece, at)?;
        let first = at / SECTOR_BYTES;
        self.content.set(first..first + piece.len() as u64 / SECTOR_BYTES, Source::Scratch);
        Ok(())
    }

    /// Makes whole sectors zeros.
    pub(crate) fn zero(&mut self, at: u64, bytes: u64) {
        self.content.set(at / SECTOR_BYTES..(at + bytes) / SECTOR_BYTES, Source::Zeros);
    }

    /// Writes what it holds into an empty file.
    pub(super) fn write_image(&self, image: &File) -> io::Result<()> {
        copy_sparsely(&self.base, image)?;
        for (&start, &(end, _)) in &self.content.extents {
            self.write_range(image, start..end)?;
        }
        Ok(())
    }

    pub(super) const fn base(&self) -> &Arc<File> {
        &self.base
    }

    pub(super) const fn data(&self) -> &Arc<File> {
        &self.data
    }

    pub(super) const fn content(&self) -> &Content {
        &self.content
    }

    /// Writes some of what it holds to the same place of a file, zeros as holes.
    pub(super) fn write_range(&self, image: &File, sectors: Range<u64>) -> io::Result<()> {
        let bytes = |sectors: &Range<u64>| (sectors.end - sectors.start) * SECTOR_BYTES;
        let mut buffer = Vec::new();
        for (sectors, source) in self.content.pieces(sectors) {
            let (mut at, end) = (sectors.start * SECTOR_BYTES, sectors.end * SECTOR_BYTES);
            let (file, mut from) = match source {
                Source::Log(data_at) => (&*self.data, data_at),
                Source::Scratch => (&self.scratch, at),
                Source::Zeros => {
                    make_hole(image, at, bytes(&sectors))?;
                    continue;
                }
                Source::Base => {
                    make_hole(image, at, bytes(&sectors))?;
                    copy_range(&self.base, at, bytes(&sectors), image, at)?;
                    continue;
                }
            };
            while at < end {
                let length = ((end - at) as usize).min(1 << 20);
                buffer.resize(buffer.len().max(length), 0);
                file.read_exact_at(&mut buffer[..length], from)?;
                image.write_all_at(&buffer[..length], at)?;
                at += length as u64;
                from += length as u64;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTORS: usize = 64;

    #[derive(Debug, Clone)]
    enum Step {
        FromLog(Range<u64>, u64),
        Zero(Range<u64>),
        Write(Range<u64>, u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let range =
            (0..SECTORS as u64, 1..16u64).prop_map(|(start, length)| start..(start + length).min(SECTORS as u64));
        let step = prop_oneof![
            (range.clone(), 0..48u64).prop_map(|(range, from)| Step::FromLog(range, from)),
            range.clone().prop_map(Step::Zero),
            (range, any::<u8>()).prop_map(|(range, byte)| Step::Write(range, byte)),
        ];
        proptest::collection::vec(step, 0..40)
    }

    proptest! {
        /// What the two hold elsewhere comes from the same place.
        #[test]
        fn contents_differ_where_they_are_told_to(steps in (steps(), steps()), same_log in any::<bool>()) {
            let content = |steps: Vec<Step>| {
                let mut content = Content::default();
                for step in steps {
                    match step {
                        Step::FromLog(range, from) => {
                            content.change(Change::Write { data_at: from * 512 }, range.start, range);
                        }
                        Step::Zero(range) => content.set(range, Source::Zeros),
                        Step::Write(range, _) => content.set(range, Source::Scratch),
                    }
                }
                content
            };
            let (ours, theirs) = (content(steps.0), content(steps.1));
            let differing = ours.differing(&theirs, same_log);
            prop_assert!(differing.windows(2).all(|pair| pair[0].end < pair[1].start));
            for sector in 0..SECTORS as u64 {
                let source = |content: &Content| content.pieces(sector..sector + 1)[0].1;
                let (our, their) = (source(&ours), source(&theirs));
                let may_differ = our != their || our == Source::Scratch || (matches!(our, Source::Log(_)) && !same_log);
                prop_assert_eq!(differing.iter().any(|range| range.contains(&sector)), may_differ, "sector {}", sector);
            }
        }

        #[test]
        fn a_shown_disk_reads_as_an_array_would(steps in steps(), window in (0..SECTORS, 0..SECTORS)) {
            let directory = std::env::temp_dir();
            let data = nameless(&directory).unwrap();
            for sector in 0..64u8 {
                data.write_all_at(&[sector + 100; 512], u64::from(sector) * 512).unwrap();
            }
            let base = nameless(&directory).unwrap();
            base.write_all_at(&[7; SECTORS * 512], 0).unwrap();
            base.set_len(SECTORS as u64 * 512).unwrap();
            let scratch = nameless(&directory).unwrap();
            let (base, data) = (Arc::new(base), Arc::new(data));
            let mut shown = Shown { content: Content::default(), base, data, scratch };
            let mut model = [7u8; SECTORS];
            for step in steps {
                match step {
                    Step::FromLog(range, from) => {
                        shown.content.change(Change::Write { data_at: from * 512 }, range.start, range.clone());
                        for (number, sector) in (0u64..).zip(range) {
                            model[sector as usize] = (from + number) as u8 + 100;
                        }
                    }
                    Step::Zero(range) => {
                        shown.zero(range.start * 512, (range.end - range.start) * 512);
                        range.for_each(|sector| model[sector as usize] = 0);
                    }
                    Step::Write(range, byte) => {
                        let piece = vec![byte; ((range.end - range.start) * 512) as usize];
                        shown.write_all_at(&piece, range.start * 512).unwrap();
                        range.for_each(|sector| model[sector as usize] = byte);
                    }
                }
            }
            let (from, to) = (window.0.min(window.1), window.0.max(window.1));
            let mut buffer = vec![0xaa; (to - from) * 512];
            shown.read_exact_at(&mut buffer, from as u64 * 512).unwrap();
            for (sector, bytes) in (from..to).zip(buffer.chunks(512)) {
                prop_assert!(bytes.iter().all(|byte| *byte == model[sector]), "sector {sector}");
            }
            let image = nameless(&directory).unwrap();
            shown.write_image(&image).unwrap();
            let mut whole = vec![0; SECTORS * 512];
            image.read_exact_at(&mut whole, 0).unwrap();
            for (sector, bytes) in whole.chunks(512).enumerate() {
                prop_assert!(bytes.iter().all(|byte| *byte == model[sector]), "sector {sector} of the image");
            }
        }
    }
}
