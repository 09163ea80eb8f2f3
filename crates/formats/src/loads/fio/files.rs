//! The files of jobs: which there are, how large, and who shares them.

use super::{
    job::{Blocks, Engine, Job},
    text::Findings,
};
use crate::{Diagnostics, Span, diagnostic::Diagnostic};
use fstone_model::workload::{Amount, Existing, Fileset, MAXIMUM_FILES, Naming, SizeDistribution, name_clashes};
use std::collections::{HashMap, HashSet};

/// Files of a job that are named one by one; more have to be numbered.
const MAXIMUM_NAMED: u64 = 1_000;
const MAXIMUM_FILESETS: usize = 10_000;
const MAXIMUM_NAME: usize = 180;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Where the job file says, from the working directory on (`fstone fio`).
    AsWritten,
    /// All below the load's directory: `/tmp/x` is `tmp/x` there (studies).
    UnderDirectory,
}

#[derive(Default)]
pub(super) struct Filesets<'l> {
    all: Vec<Fileset>,
    first: Vec<Made>,
    uses: Vec<Uses>,
    looks: Option<&'l Look<'l>>,
    /// By directory and prefix, and whether that is the whole name.
    known: HashMap<(String, String, bool), usize>,
    names: HashSet<String>,
}

/// How files are made: as the jobs want them that have them first.
#[derive(Debug, Clone, Copy)]
struct Made {
    level: usize,
    fill: bool,
    allocate: bool,
    grows: bool,
    when_opened: bool,
}

/// When files are first written and first verified by jobs with `verify_only`, by level.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    written: Option<usize>,
    verified: Option<usize>,
}

impl Uses {
    fn add(&mut self, job: &Job, level: usize) {
        let at = if job.verify_only { &mut self.verified } else { &mut self.written };
        if job.verify_only || job.direction.writes {
            *at = Some(at.map_or(level, |first| first.min(level)));
        }
    }

    /// Files that are laid out anew would hide that those of an earlier run are lost.
    fn require(self) -> bool {
        self.verified.is_some_and(|verified| self.written.is_none_or(|written| written >= verified))
    }
}

#[derive(Debug, Clone, Copy)]
enum There {
    Missing,
    /// All, and all have so many bytes.
    Alike(u64),
    /// Some, or of several sizes, or too many to look at each.
    Different,
}

/// Gives the size of a regular file that is there.
pub type Look<'l> = dyn Fn(&str) -> Option<u64> + 'l;

#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Its filesets; several when its files have names of their own.
    pub(super) filesets: Vec<u32>,
    pub(super) files: u64,
    /// Where its part of each file begins.
    pub(super) offset: u64,
    /// How long its part of each file is, in whole blocks.
    pub(super) length: u64,
    /// Size of each file, if they are all alike.
    pub(super) file_bytes: Option<u64>,
}

impl Place {
    pub(super) const fn bytes(&self) -> u64 {
        self.length.saturating_mul(self.files)
    }
}

impl<'l> Filesets<'l> {
    /// None yet; `looks` at files that are there.
    pub(super) fn new(looks: &'l Look<'l>) -> Self {
        Self { looks: Some(looks), ..Self::default() }
    }

    pub(super) fn into_filesets(self) -> Vec<Fileset> {
        let first = self.first;
        let mut all = self.all;
        for (fileset, _) in all.iter_mut().zip(self.uses).filter(|(_, uses)| uses.require()) {
            if fileset.existing == Existing::Reuse {
                fileset.existing = Existing::Require;
            }
        }
        for (fileset, made) in all.iter_mut().zip(first) {
            if device_of(fileset).is_some() {
                (fileset.fill, fileset.existing) = (false, Existing::Require);
                continue;
            }
            fileset.fill = made.fill;
            fileset.allocate = made.allocate && !made.fill;
            fileset.grows = made.grows && !made.fill;
            fileset.made_when_opened = made.when_opened && !made.fill;
        }
        all
    }

    pub(super) fn files_of(&self, fileset: u32) -> u64 {
        match self.all[fileset as usize].amount {
            Amount::Files(files) => files,
            Amount::Bytes(_) | Amount::Utilization(_) => 0,
        }
    }

    pub(super) fn is_device(&self, fileset: u32) -> bool {
        device_of(&self.all[fileset as usize]).is_some()
    }

    /// Two filesets whose files can have the same names, if there are any.
    pub(super) fn conflict(&self) -> Option<(&str, &str)> {
        let (first, later) = name_clashes(&self.all).next()?;
        Some((&self.all[first].name, &self.all[later].name))
    }

    /// Size of a fileset's files, if they are all alike.
    pub(super) fn size_of(&self, fileset: u32) -> Option<u64> {
        match self.all[fileset as usize].size {
            SizeDistribution::Fixed(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The files of a clone of a job; `None` after having reported why there can be none.
    pub(super) fn of(
        &mut self,
        job: &Job,
        clone: u32,
        level: usize,
        placement: Placement,
        findings: &mut Findings,
    ) -> Option<Place> {
        let named = !job.filenames.is_empty();
        if named && (job.engine.makes() || job.engine.of_directories()) {
            let what = format!("`{}` makes files or works on directories, and filename cannot name those", job.name);
            error(job, findings, what, "leave filename out, and name them by directory and filename_format");
            return None;
        }
        let files = if named { job.filenames.len() as u64 } else { job.files };
        if named {
            // Of a name that is refused the size is no concern.
            for name in &job.filenames {
                place_of(job, clone, name, placement, findings)?;
            }
        }
        let there =
            if !job.engine.of_files() { self.those_there(job, clone, placement, findings)? } else { There::Missing };
        let size_there = if let There::Alike(bytes) = there { Some(bytes) } else { None };
        let mut sizes = sizes(job, files, size_there, findings)?;
        if (is_share_of_files(job) || job.append) && matches!(there, There::Different) {
            let cure = "give the offset as bytes, such as offset=1g";
            error(job, findings, "an offset that is a share or the end of files of several sizes".into(), cure);
            return None;
        }
        if is_share_of_files(job) && size_there.is_none() {
            let why = "as in fio, an offset that is a share of a file that is not there when the job is read is 0";
            note(job, findings, format!("`{}` begins at the start of its files", job.name), why);
        }
        let offset = offset(job, clone, size_there.unwrap_or(0));
        let block = block(job);
        if let Some(there) = size_there.filter(|_| !has_size(job)) {
            // A share of what is there, and no more than is behind the offset.
            let share = job.size.map_or(there, |share| share.of(there));
            let left = share.min(there.saturating_sub(offset));
            sizes = SizeDistribution::Fixed(left / block * block);
        }
        // A `filesize` is of the whole file, and a `size` of what is behind the offset.
        let whole = job.file_size.is_some();
        let typical = sizes.typical_bytes();
        let part = if whole { typical.saturating_sub(offset) } else { typical };
        let length = part / block * block;
        let end = if whole { Some(typical) } else { offset.checked_add(typical) };
        let Some(end) = end.filter(|end| *end <= i64::MAX as u64) else {
            error(job, findings, "files end behind what any file can hold".into(), "give a smaller offset or size");
            return None;
        };
        let size = if offset == 0 { sizes } else { SizeDistribution::Fixed(end) };
        let file_bytes = match size {
            SizeDistribution::Fixed(bytes) => Some(bytes),
            _ => None,
        };
        if length == 0 && !job.engine.of_files() {
            error(
                job,
                findings,
                format!("files of {part} bytes cannot hold a block of {block}"),
                "give a larger size, or a smaller bs or offset",
            );
            return None;
        }
        let apart = job.direction.gap != 0 || job.direction.burst > 1;
        if apart
            && !job.engine.of_files()
            && (files > 1 || !job.blocks.iter().all(|blocks| matches!(blocks, Blocks::Fixed(_))))
        {
            let cure = "give the job one file and one block size, or rw alone";
            error(job, findings, "a suffix of rw=, and zones, need one file and blocks of one size".into(), cure);
            return None;
        }
        // Parts of files are for files that each are a fileset.
        let one_by_one = !job.engine.of_files() && (offset > 0 || (file_bytes.is_some() && length != part));
        let names: Vec<(String, Option<u64>)> = if named {
            job.filenames.iter().map(|name| (name.clone(), None)).collect()
        } else if files == 1 && !job.engine.of_files() && !job.removes_between() {
            vec![(job.file_name(clone, 0), None)]
        } else if let Some(prefix) = numbered_prefix(job, clone).filter(|_| !one_by_one) {
            vec![(prefix, Some(files))]
        } else if files <= MAXIMUM_NAMED && !job.engine.of_files() {
            (0..files).map(|file| (job.file_name(clone, file), None)).collect()
        } else {
            let cure =
                "let each hold whole blocks from its beginning, and filename_format end with a name and $filenum";
            error(job, findings, format!("more than {MAXIMUM_NAMED} files that must be named one by one"), cure);
            return None;
        };
        if job.removes_between() && names.iter().any(|(_, numbered)| numbered.is_none()) {
            let cure = "leave filename and offset out, and let filename_format end with $filenum";
            error(job, findings, "unlink_each_loop with files that are named one by one".into(), cure);
            return None;
        }
        let mut filesets = Vec::new();
        if self.all.len() + names.len() > MAXIMUM_FILESETS {
            let what = format!("more than {MAXIMUM_FILESETS} names of files, but for numbered ones");
            error(job, findings, what, "use fewer clones, or numbered files");
            return None;
        }
        for (name, numbered) in names {
            let (directory, file) = place_of(job, clone, &name, placement, findings)?;
            filesets.push(self.share(job, directory, file, numbered, &size, level));
        }
        Some(Place { filesets, files, offset, length, file_bytes })
    }

    /// The files of a clone that are there when it begins; `None` after having reported a name that is none.
    fn those_there(&self, job: &Job, clone: u32, placement: Placement, findings: &mut Findings) -> Option<There> {
        if has_size(job) && !is_share_of_files(job) && !job.append {
            return Some(There::Missing);
        }
        let of_one = |name: &str, findings: &mut Findings| {
            let (directory, file) = place_of(job, clone, name, placement, findings)?;
            // What jobs before it have had made.
            let made = self.known.get(&(directory, file, true)).and_then(|known| {
                let made = self.first[*known];
                self.size_of(*known as u32).filter(|_| made.fill || made.allocate)
            });
            let looks = self.looks.filter(|_| placement == Placement::AsWritten);
            let found = looks.and_then(|looks| looks(&path_of(job, clone, name)));
            Some(made.max(found))
        };
        let names: Vec<String> = match job.filenames.is_empty() {
            true if job.files > MAXIMUM_NAMED => return Some(There::Different),
            true => (0..job.files).map(|file| job.file_name(clone, file)).collect(),
            false => job.filenames.clone(),
        };
        let first = of_one(&names[0], findings)?;
        for name in &names[1..] {
            if of_one(name, findings)? != first {
                return Some(There::Different);
            }
        }
        Some(first.map_or(There::Missing, There::Alike))
    }

    /// The fileset of this name: one that is there, made larger where that is needed, or a new one.
    fn share(
        &mut self,
        job: &Job,
        directory: String,
        prefix: String,
        numbered: Option<u64>,
        size: &SizeDistribution,
        level: usize,
    ) -> u32 {
        // As in fio, files that are only looked at or deleted are laid out like others.
        let has_data = !job.engine.makes() && !job.engine.of_directories();
        let wanted = Made {
            level,
            // A mapping writes only where there is something. What is made when it is opened is there before for those that read alone.
            fill: has_data
                && (job.direction.reads || (job.overwrite && !job.create_on_open) || job.engine == Engine::Mmap),
            allocate: has_data && job.allocate && !job.fills,
            grows: has_data && (job.grows || job.fills),
            when_opened: !job.engine.of_files() && job.create_on_open,
        };
        let exact = numbered.is_none();
        // Of files that are not named one by one, only those that the load makes go.
        let takes = matches!(job.engine, Engine::FileDelete | Engine::FileRename) && job.filenames.is_empty();
        let rebuilds = takes || job.engine.makes();
        let key = (directory.clone(), prefix.clone(), exact);
        let known = self.known.get(&key).copied();
        if let Some(index) = known {
            if takes {
                self.all[index].existing = Existing::Rebuild;
            }
            if let (SizeDistribution::Fixed(has), SizeDistribution::Fixed(needs)) = (&mut self.all[index].size, size) {
                *has = (*has).max(*needs);
            }
            if let (Amount::Files(has), Some(needs)) = (&mut self.all[index].amount, numbered)
                && !job.engine.of_directories()
            {
                *has = (*has).max(needs);
            }
            self.uses[index].add(job, level);
            let first = &mut self.first[index];
            *first = match first.level.cmp(&level) {
                std::cmp::Ordering::Less => *first,
                std::cmp::Ordering::Equal => {
                    let (fill, allocate) = (first.fill || wanted.fill, first.allocate || wanted.allocate);
                    let [grows, when_opened] = [first.grows && wanted.grows, first.when_opened && wanted.when_opened];
                    Made { level, fill, allocate, grows, when_opened }
                }
                std::cmp::Ordering::Greater => wanted,
            };
            return index as u32;
        }
        let whole = if directory.is_empty() { prefix.clone() } else { format!("{directory}/{prefix}") };
        let names = numbered.unwrap_or(1);
        let (files, leaves) = if job.engine.of_directories() { (0, names) } else { (names, 0) };
        let mut fileset = Fileset::new(whole, Amount::Files(files), size.clone());
        fileset.directory = directory;
        fileset.leaf_directories = leaves;
        // Names of directories that are never made, and cannot be another fileset's.
        let no_directories = format!("{prefix}.fstone-directory");
        fileset.naming = if job.engine.of_directories() {
            let file_prefix = format!("{prefix}file");
            Naming { file_prefix, directory_prefix: no_directories, leaf_prefix: Some(prefix), exact: false }
        } else {
            Naming { directory_prefix: no_directories, file_prefix: prefix, exact, leaf_prefix: None }
        };
        fileset.existing = if rebuilds { Existing::Rebuild } else { Existing::Reuse };
        fileset.preallocated = if job.engine.makes() { 0.0 } else { 1.0 };
        // Two may look alike: a name, and a prefix with a number behind it. A workload file has `*` for any fileset.
        while fileset.name == "*" || !self.names.insert(fileset.name.clone()) {
            fileset.name.push_str(if exact { " (file)" } else { " (files)" });
        }
        self.known.insert(key, self.all.len());
        self.all.push(fileset);
        self.first.push(wanted);
        self.uses.push(Uses::default());
        self.uses[self.all.len() - 1].add(job, level);
        (self.all.len() - 1) as u32
    }
}

fn sizes(job: &Job, files: u64, there: Option<u64>, findings: &mut Findings) -> Option<SizeDistribution> {
    if let Some((low, high)) = job.file_size {
        return Some(if low == high { SizeDistribution::Fixed(low) } else { whole_blocks(low, high, block(job)) });
    }
    if job.engine.of_files() && job.size.is_none() {
        return Some(SizeDistribution::Fixed(0));
    }
    match job.size {
        // More than there is on any filesystem: it is full before.
        None if job.fills => Some(SizeDistribution::Fixed(1 << 47)),
        Some(super::job::Amount::Bytes(bytes)) if bytes > 0 => Some(SizeDistribution::Fixed(bytes / files.max(1))),
        _ if there.is_some() => there.map(SizeDistribution::Fixed),
        Some(super::job::Amount::Percent(_)) => {
            let cure = "give size as bytes, such as size=1g";
            error(job, findings, "a share of files that are not there, or not of one size".into(), cure);
            None
        }
        _ => {
            let cure = "add size=, such as size=1g; `fstone fio` takes that of files that are there and of one size";
            error(job, findings, format!("`{}` has no size", job.name), cure);
            None
        }
    }
}

/// Sizes from a range as fio draws them: cut down to whole blocks.
fn whole_blocks(low: u64, high: u64, block: u64) -> SizeDistribution {
    // Sizes in a table, and weight of one that is drawn as often as any.
    const MOST: u64 = 1000;
    const WHOLE: u128 = 1 << 20;
    let step = block.saturating_mul((high - low) / block / MOST + 1);
    let of = |number: u64| {
        let (begin, end) = ((number * step).max(low), (number + 1).saturating_mul(step).min(high));
        (number * step, (u128::from(end - begin) * WHOLE / u128::from(step)).max(1) as u32)
    };
    let table: Vec<(u64, u32)> = (low / step..=(high - 1) / step).map(of).collect();
    match table.as_slice() {
        [(only, _)] => SizeDistribution::Fixed(*only),
        _ => SizeDistribution::Weighted(table),
    }
}

/// Whether a job says how large its files are; otherwise it works on what is there.
fn has_size(job: &Job) -> bool {
    job.file_size.is_some()
        || (job.fills && job.size.is_none())
        || matches!(job.size, Some(super::job::Amount::Bytes(bytes)) if bytes > 0)
}

fn is_share_of_files(job: &Job) -> bool {
    [job.offset, job.offset_increment].iter().any(|of| matches!(of, Some(super::job::Amount::Percent(1..))))
}

fn offset(job: &Job, clone: u32, there: u64) -> u64 {
    if job.append {
        return there;
    }
    let of = |amount: Option<super::job::Amount>| amount.map_or(0, |amount| amount.of(there));
    let offset = of(job.offset).saturating_add(of(job.offset_increment).saturating_mul(u64::from(clone)));
    // Shares fall where they fall, and fio takes the next block.
    let align = job.offset_align.unwrap_or_else(|| block(job));
    if is_share_of_files(job) { offset.checked_next_multiple_of(align).unwrap_or(offset) } else { offset }
}

/// What a job's part of a file is a multiple of.
pub(super) fn block(job: &Job) -> u64 {
    let directions = [job.direction.reads, job.direction.writes];
    let used = job.blocks.iter().zip(directions).filter(|(_, used)| *used);
    used.map(|(blocks, _)| blocks.smallest()).min().unwrap_or(1).max(1)
}

/// What stands before the number in the names of a clone's files, if that is all that differs and can be a name by itself.
fn numbered_prefix(job: &Job, clone: u32) -> Option<String> {
    if !job.format.ends_with("$filenum") || job.format.matches("$filenum").count() != 1 {
        return None;
    }
    let whole = job.file_name(clone, 0);
    let prefix = whole.strip_suffix('0')?;
    let last = prefix.rsplit('/').next().unwrap_or(prefix).trim();
    (!matches!(last, "" | "." | "..")).then(|| prefix.to_owned())
}

fn path_of(job: &Job, clone: u32, name: &str) -> String {
    let directory = job.directory(clone);
    if name.starts_with('/') || directory.is_empty() {
        name.to_owned()
    } else {
        format!("{}/{name}", directory.trim_end_matches('/'))
    }
}

/// Names with `..` as the kernel takes them, where their directory is there; others are refused. A log names its files itself.
pub(super) fn resolve_parents(job: &mut Job, real: &dyn Fn(&str) -> Option<String>) {
    let leads_up = |path: &str| path.split('/').any(|part| part == "..");
    let directories = job.directories.iter_mut().filter(|directory| leads_up(directory));
    directories.for_each(|directory| *directory = real(directory).unwrap_or_else(|| std::mem::take(directory)));
    if !job.iologs.is_empty() || job.directories.len() > 1 {
        return;
    }
    for index in 0..job.filenames.len() {
        let name = &job.filenames[index];
        let Some((above, file)) = name.rsplit_once('/').filter(|(above, file)| leads_up(above) && *file != "..") else {
            continue;
        };
        if let Some(real) = real(&path_of(job, 0, above)) {
            job.filenames[index] = format!("{}/{file}", real.trim_end_matches('/'));
        }
    }
}

fn place_of(
    job: &Job,
    clone: u32,
    name: &str,
    placement: Placement,
    findings: &mut Findings,
) -> Option<(String, String)> {
    let whole = path_of(job, clone, name);
    if placement == Placement::UnderDirectory && is_device(&whole) {
        let cure = "leave filename out and give size=; `fstone fio` runs such a job on the device";
        error(job, findings, format!("`{whole}` is a device, but a job works on files here"), cure);
        return None;
    }
    let below = match placement {
        Placement::AsWritten => whole.as_str(),
        Placement::UnderDirectory => whole.trim_start_matches('/'),
    };
    // A workload file has no names that are blanks, and few people mean them.
    let plain = |part: &str| part != ".." && !part.contains('\0') && !part.trim().is_empty();
    let (directory, file) = below.rsplit_once('/').unwrap_or(("", below));
    let absolute = directory.starts_with('/') || (directory.is_empty() && below.starts_with('/'));
    let parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if file == "." || file.len() > MAXIMUM_NAME || !plain(file) || !parts.iter().all(|part| plain(part)) {
        let cure = "a short name with more than blanks in it, and `..` only in `fstone fio` and above a directory that is there";
        error(job, findings, format!("`{whole}` is not a name for a file here"), cure);
        return None;
    }
    let directory = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
    Some((directory, file.to_owned()))
}

/// Whether a path is one of a device; what is in /dev/shm is a file.
pub(super) fn is_device(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    path.starts_with('/') && parts.next() == Some("dev") && parts.next().is_some_and(|name| name != "shm")
}

/// The path of a fileset's one file, if it is a device.
pub(super) fn device_of(fileset: &Fileset) -> Option<String> {
    let path = format!("{}/{}", fileset.directory, fileset.naming.file_prefix);
    is_device(&path).then_some(path)
}

pub(super) fn error(job: &Job, findings: &mut Findings, message: String, cure: &str) {
    let diagnostic = match &job.section {
        Some((_, span)) => Diagnostic::error(*span, message),
        None => Diagnostic::whole(message),
    };
    tell(job, findings, diagnostic.help(cure));
}

pub(super) fn note(job: &Job, findings: &mut Findings, message: String, why: &str) {
    let span = job.section.as_ref().map_or_else(Span::default, |(_, span)| *span);
    tell(job, findings, Diagnostic::warning(span, message).note(why));
}

fn tell(job: &Job, findings: &mut Findings, diagnostic: Diagnostic) {
    match &job.section {
        Some((source, _)) if source != findings.report().source() => {
            findings.report().append(Diagnostics::one(source, diagnostic));
        }
        _ => findings.report().push(diagnostic),
    }
}

pub(super) const MOST_FILES: u64 = MAXIMUM_FILES;

#[cfg(test)]
mod tests {
    use super::super::{Options, Plan, parse};
    use crate::{Diagnostics, Source, native};

    fn read(text: &str) -> Result<Plan, Diagnostics> {
        let mut options = Options {
            placement: super::Placement::UnderDirectory,
            sections: &[],
            variable: &|name| (name == "BLANK").then(|| " ".to_owned()),
            size_of: &|_| None,
            real: &|_| None,
            loader: &mut |_| Err("it is not read here".to_owned()),
            seconds: None,
        };
        parse(&Source::new("load.fio", format!("[global]\nsize=1m\n{text}\n")), &mut options)
    }

    /// Found by fuzzing: a directory of blanks, which a workload file does not take.
    #[test]
    fn every_name_that_is_taken_can_be_converted() {
        let taken = [
            "[a]\nfilename=*",
            "[a]\nfilename=a (files):b\n[b]\nfilename_format=a$filenum\nnrfiles=2\ndirectory=x",
            "[a]\nfilename=...",
            "[a]\nfilename=./a:.//b:c/./d",
            "[a]\n[a]\n[a (2)]",
            "[c verify]\n[c]\nrw=write\nverify=md5\n[c verify]",
            "[a]\nnrfiles=3\nfilename_format=$jobnum/$filenum",
            "[a]\nnrfiles=3\nfilename_format=..$filenum",
            "[a]\nnrfiles=3\nfilename_format=.$filenum",
            "[a]\nnrfiles=3\nfilename_format=$filenum",
            "[ a ]",
        ];
        for text in taken {
            let workload = read(text).unwrap_or_else(|wrong| panic!("{wrong}")).workload;
            let converted = native::print(&workload);
            match native::parse(&Source::new("converted", converted.as_str())) {
                Ok(again) => assert_eq!(again, workload.without_unused_depths(), "{text}"),
                Err(wrong) => panic!("{text}\n{converted}\n{wrong}"),
            }
        }
        let refused = [
            "[\t/\t-\t$jobname\t:\tv]",
            "[a]\nfilename=\\ ",
            "[a]\nfilename= / :b",
            "[a]\nfilename=.",
            "[a]\nfilename=a/..",
            "[a]\nfilename=//",
            "[a]\nfilename=/",
            "[a]\nfilename=::",
            "[a]\nfilename_format=/",
            "[a]\nfilename_format=a/${BLANK}",
            "[a]\ndirectory=${BLANK}",
            "[a]\ndirectory=..",
            "[a]\nname=${BLANK}",
            "[a]\nioengine=filecreate\nnrfiles=3\nfilename_format=$filenum",
        ];
        for text in refused {
            let wrong = read(text).expect_err(text).to_string();
            assert!(
                ["not a name for a file", "not a value for", "must be named"].iter().any(|why| wrong.contains(why)),
                "{text}: {wrong}"
            );
        }
    }
}
