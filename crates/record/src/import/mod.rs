//! Logs of other tools as recordings.
//!
//! A log is read twice. What it says of files tells first which of them were there before (`survey`), because the tree comes before the
//! calls; then its calls are written. If it says only later where it worked, or that a name is another file's, it is surveyed again. Readers of formats (`strace`, `plain`) hand over calls whose names are absolute paths.

pub(crate) mod log;
mod plain;
mod strace;
mod survey;

use crate::call::{End, Entry, Kind, Node, Start, Unknown};
use crate::file::{Writer, is_recording};
use crate::trace::{Roots, normal, top_name};
use fstone_model::text;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use survey::Survey;

pub use log::ImportError;
use log::{Each, Heard, Lines, Log};

#[derive(Clone, Copy)]
pub struct Import<'a> {
    pub log: &'a Path,
    /// The directories whose files count, as absolute paths; if there is none, the log decides.
    pub under: &'a [Vec<u8>],
    /// Leave lines of unknown form out, and count them.
    pub lenient: bool,
}

pub struct Imported {
    pub format: &'static str,
    pub calls: u64,
    pub bytes: u64,
    pub left_out_lines: u64,
    /// What the log does not say.
    pub unknown: Vec<Unknown>,
}

/// Of names that are other files', how many are remembered.
const MOST_OTHERS: usize = 1 << 12;
const PACKED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"];

type Reads = fn(&mut Lines, Each<'_>) -> Result<Log, ImportError>;

/// The format that a log has by its first lines.
fn format_of(import: &Import<'_>) -> Result<(&'static str, Reads), ImportError> {
    if is_recording(import.log) {
        return Err(ImportError::Recording);
    }
    let mut lines = Lines::open(import.log, import.lenient)?;
    let first = lines.next()?.unwrap_or_default();
    let mut head = [0; 512];
    let length = File::open(import.log).and_then(|mut log| log.read(&mut head)).map_err(ImportError::Read)?;
    let head = &head[..length];
    let format: (&'static str, Reads) = match first.as_str() {
        "fio version 2 iolog" | "fio version 3 iolog" => ("fio iolog", plain::iolog),
        // The first bytes of gzip, zstd, xz and bzip2; of others that are no text, zeros soon come.
        _ if PACKED.iter().any(|magic| head.starts_with(magic)) => return Err(ImportError::Binary { is_packed: true }),
        _ if head.contains(&0) => return Err(ImportError::Binary { is_packed: false }),
        _ if first.starts_with("# darshan") || first.starts_with("# DXT") => ("Darshan DXT", plain::dxt),
        _ => ("strace", strace::read),
    };
    Ok(format)
}

/// Writes a log as a recording.
///
/// # Errors
/// If it cannot be read, has a line of unknown form, or the recording cannot be written.
pub fn import(import: &Import<'_>, out: File) -> Result<Imported, ImportError> {
    let (format, read) = format_of(import)?;
    let mut lines = Lines::open(import.log, import.lenient)?;
    // Names of files that are others' without links: most logs have some of libraries.
    let mut others = HashSet::new();
    let surveyed = |lines: &mut Lines, below: &Roots, others: &mut HashSet<[Vec<u8>; 2]>| {
        let mut survey = Survey::default();
        let log = read(lines, &mut |heard| {
            if heard.is_possible() {
                let name = heard.at.as_deref().map(normal).unwrap_or_default();
                if let Some(real) = heard.real.as_ref().filter(|real| **real != name && others.len() <= MOST_OTHERS) {
                    others.insert([name, real.clone()]);
                }
                let heard = by_known_name(heard, below);
                survey.hear(&Heard {
                    at: heard.at.as_deref().map(normal),
                    to: heard.to.map(|to| if heard.call.has_two_names() { normal(&to) } else { to }),
                    ..heard
                });
            }
            Ok(())
        })?;
        Ok::<_, ImportError>((survey, log))
    };
    let roots_of = |roots: &[Vec<u8>]| {
        let pairs: Vec<_> = roots.iter().map(|root| (root.clone(), root.clone())).collect();
        Roots::new(&pairs)
    };
    let (mut survey, mut log) = surveyed(&mut lines, &roots_of(import.under), &mut others)?;
    let roots = match (import.under, log.directory.clone()) {
        ([], Some(directory)) => vec![directory],
        ([], None) => vec![survey.common_directory()],
        (under, _) => under.to_vec(),
    };
    let below = roots_of(&roots);
    let directory = log.directory.take().filter(|_| log.was_directory_needed);
    let is_as_named = |[name, real]: &[Vec<u8>; 2]| below.below(name).is_some() || below.below(real).is_none();
    let were_roots_known = !import.under.is_empty() || others.len() <= MOST_OTHERS && others.iter().all(is_as_named);
    if directory.is_some() || !were_roots_known {
        lines = Lines::open(import.log, import.lenient)?;
        lines.directory.clone_from(&directory);
        (survey, log) = surveyed(&mut lines, &below, &mut others)?;
    }
    let mut unknown = log.unknown;
    if lines.is_cut {
        unknown.push(Unknown::LastLine);
    }
    let count = if log.has_pids || format != "strace" { 0 } else { beside(import.log) };
    if count > 0 {
        unknown.push(Unknown::OtherLogs { count });
    }
    unknown.push(Unknown::Tree);
    let shown = roots.iter().map(|root| text::line(&String::from_utf8_lossy(root))).collect::<Vec<_>>().join(", ");
    let roots_count = roots.len();
    let start = Start { roots, began_unix_ns: log.began_unix_ns, unknown: unknown.clone(), ..Start::default() };
    let mut writing = Writing {
        writer: Writer::new(BufWriter::new(out), start).map_err(ImportError::Write)?,
        below,
        files: HashSet::new(),
        mapped: std::mem::take(&mut survey.mapped),
        ends_ns: HashMap::new(),
    };
    writing.tree(survey, roots_count).map_err(ImportError::Write)?;
    let mut lines = Lines::open(import.log, import.lenient)?;
    lines.directory = directory;
    read(&mut lines, &mut |heard| writing.write(heard)).map_err(|error| match error {
        // What was read once without an error can only fail here by being written.
        ImportError::Read(cause) => ImportError::Write(cause),
        error => error,
    })?;
    let calls = writing.writer.calls;
    if calls == 0 {
        return Err(ImportError::Nothing(shown));
    }
    let end = End { at_ns: log.end_ns, status: log.status };
    let (_, bytes) = writing.writer.finish(end).map_err(ImportError::Write)?;
    Ok(Imported { format, calls, bytes, left_out_lines: lines.left_out, unknown })
}

/// A file that was opened by a name elsewhere, through a link or by a descriptor's, has the name that it has below.
fn by_known_name(mut heard: Heard, below: &Roots) -> Heard {
    let is_inside = |path: &Vec<u8>| below.below(&normal(path)).is_some();
    if let Some(real) = heard.real.take_if(|real| is_inside(real))
        && !heard.at.as_ref().is_some_and(is_inside)
    {
        heard.at = Some(real);
    }
    heard
}

/// Logs of other processes, as strace -ff writes them: each has its process's number behind the same name.
fn beside(log: &Path) -> u64 {
    let is_one = |path: &Path| {
        path.extension().is_some_and(|pid| !pid.is_empty() && pid.as_bytes().iter().all(u8::is_ascii_digit))
    };
    let directory = log.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some((prefix, entries)) = log.file_stem().filter(|_| is_one(log)).zip(directory.read_dir().ok()) else {
        return 0;
    };
    let names = entries.flatten().map(|entry| PathBuf::from(entry.file_name()));
    names
        .filter(|name| is_one(name) && name.file_stem() == Some(prefix) && Some(name.as_os_str()) != log.file_name())
        .count() as u64
}

struct Writing {
    writer: Writer<BufWriter<File>>,
    below: Roots,
    /// Open files that are recorded.
    files: HashSet<u32>,
    /// How long mapped files were.
    mapped: VecDeque<Option<u64>>,
    /// Of each thread, when its last call ended, or it began.
    ends_ns: HashMap<u32, u64>,
}

impl Writing {
    fn tree(&mut self, survey: Survey, roots: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        if roots > 1 {
            let top = |index| Entry { path: top_name(index, roots), mode: 0o755, node: Node::Directory };
            entries.extend((0..roots).map(top));
        }
        for (path, mode, node) in survey.before() {
            if let Some(path) = self.below.below(&path).filter(|path| !path.is_empty()) {
                entries.push(Entry { path, mode, node });
            }
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        entries.dedup_by(|one, other| one.path == other.path);
        entries.into_iter().try_for_each(|entry| self.writer.entry(entry))?;
        self.writer.flush()
    }

    fn write(&mut self, heard: Heard) -> io::Result<()> {
        let is_possible = heard.is_possible();
        let Heard { mut call, at, to, .. } = by_known_name(heard, &self.below);
        if call.kind == Kind::Map
            && is_possible
            && let Some(bytes) = self.mapped.pop_front().flatten()
        {
            call.length = call.length.min(bytes.saturating_sub(call.offset.max(0) as u64));
        }
        let end_ns = call.begin_ns.saturating_add(call.took_ns);
        let last = self.ends_ns.entry(call.thread).or_insert(0);
        call.think_ns = call.begin_ns.saturating_sub(*last);
        let is_inside = |number: u32| self.files.contains(&number);
        let below = |path: &Vec<u8>| self.below.inside(path).or_else(|| self.below.below(&normal(path)));
        let at_below = at.as_ref().map(below);
        let to_below = to.as_ref().filter(|_| call.has_two_names()).map(below);
        if call.kind.is_copy() {
            call.file = if is_inside(call.file) { call.file } else { 0 };
            call.other = if is_inside(call.other) { call.other } else { 0 };
        }
        let is_ours = match call.kind {
            _ if !is_possible => false,
            kind if kind.is_of_threads() => true,
            Kind::Sync | Kind::Uring | Kind::Aio | Kind::PolledRing | Kind::Msync | Kind::OpenByHandle | Kind::Lost => {
                true
            }
            kind if kind.is_copy() => call.file != 0 || call.other != 0,
            Kind::Open => matches!(at_below, Some(Some(_))),
            Kind::Reflink => is_inside(call.file) && is_inside(call.other),
            _ => {
                let names = [&at_below, &to_below].into_iter().all(|name| !matches!(name, Some(None)));
                names && (call.file == 0 || is_inside(call.file)) && (call.file != 0 || at.is_some())
            }
        };
        if !is_ours {
            let moves = call.kind.reads() || call.kind.writes() || call.kind.is_copy();
            let bytes = if moves { call.result.max(0) as u64 } else { 0 };
            self.writer.outside(bytes, at.as_deref());
            return Ok(());
        }
        *last = end_ns;
        match call.kind {
            Kind::Open if call.other != 0 => _ = self.files.insert(call.other),
            Kind::Close => _ = self.files.remove(&call.file),
            Kind::Spawn => _ = self.ends_ns.insert(call.result as u32, call.begin_ns),
            _ => {}
        }
        call.at = at_below.flatten().map(|name| self.writer.place(0, &name));
        call.to = match (to_below.flatten(), to) {
            (Some(name), _) => Some(self.writer.place(0, &name)),
            (None, text) => text.map(|text| self.writer.place(0, &text)),
        };
        self.writer.call(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::file::Reader;

    /// The calls of a log, with names in place of their indices, and the tree.
    pub(super) fn imported(text: &str, under: &[&str]) -> Result<(Vec<Call>, Vec<String>), ImportError> {
        let (calls, tree, _) = named(text, under, false)?;
        Ok((calls.into_iter().map(|(call, _)| call).collect(), tree))
    }

    type Named = (Vec<(Call, String)>, Vec<String>, Imported);

    pub(super) fn named(text: &str, under: &[&str], lenient: bool) -> Result<Named, ImportError> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let [log, out] = ["log", "out"].map(|name| place.path().join(name));
        std::fs::write(&log, text).expect("writable");
        let under: Vec<Vec<u8>> = under.iter().map(|path| path.as_bytes().to_vec()).collect();
        let file = File::create(&out).expect("writable");
        let done = import(&Import { log: &log, under: &under, lenient }, file)?;
        let mut reader = Reader::open(&out).expect("sound");
        let (mut calls, mut tree) = (Vec::new(), Vec::new());
        while let Some(block) = reader.block().expect("readable") {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            tree.extend(block.tree.iter().map(|entry| match &entry.node {
                Node::File { size_bytes, .. } => format!("{} {size_bytes}", text(&entry.path)),
                Node::Link { target } => format!("{} -> {}", text(&entry.path), text(target)),
                _ => text(&entry.path),
            }));
            calls.extend(block.calls.iter().map(|call| {
                let names = [call.at, call.to].into_iter().flatten().map(|place| text(block.name(place)));
                (*call, names.collect::<Vec<_>>().join(" "))
            }));
        }
        Ok((calls, tree, done))
    }

    /// As strace -ff writes them.
    #[test]
    fn logs_of_other_processes_beside_one_are_named() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| place.path().join(name);
        let write = |name: &str, pid: &str| {
            std::fs::write(path(name), format!("{pid}10.0 mkdir(\"/w/a\", 0777) = 0 <0.000010>\n")).expect("writable");
        };
        let said = |name: &str| {
            let out = File::create(path("out")).expect("writable");
            let log = path(name);
            let done = import(&Import { log: &log, under: &[b"/w".to_vec()], lenient: false }, out).expect("sound");
            done.unknown.into_iter().find(|unknown| matches!(unknown, Unknown::OtherLogs { .. }))
        };
        for name in ["app.log.20", "app.log.x3", "app.log.20.rec", "app.21", "app.log"] {
            write(name, "");
        }
        assert_eq!(said("app.log.20"), None);
        for name in ["app.log.21", "app.log.9"] {
            write(name, "");
        }
        assert_eq!(said("app.log.20"), Some(Unknown::OtherLogs { count: 2 }));
        assert_eq!(said("app.log"), None);
        write("app.log.20", "20 ");
        assert_eq!(said("app.log.20"), None, "its lines say whose they are");
    }
}
