//! Flowops in the words of the model: what a thread does, step by step.

use super::files::Files;
use super::random::drawn;
use super::tree::{At, Attribute, Flowop, Local};
use super::value::{Amount, Attributes, Scope};
use super::words::FLOWOPS;
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::workload::{
    Action, Distribution, Extent, FileChoice, FinishUnit, MAXIMUM_HANDLES, Operation, PaceUnit, Pattern,
    SizeDistribution, Step, Transfer,
};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const MAXIMUM_DEPTH: usize = 16;
/// Size of reads and writes where filebench takes the file in one.
const WHOLE_BLOCK: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Composite {
    pub(super) locals: Vec<Local>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) flowops: Vec<Flowop>,
}

pub(super) struct World<'a> {
    pub(super) files: &'a [Files],
    pub(super) composites: &'a HashMap<String, Composite>,
    /// Events per second.
    pub(super) rate: Option<f64>,
    pub(super) memory: u64,
    /// Instances of the process.
    pub(super) processes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) direct: bool,
    pub(super) dsync: bool,
}

#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) opening: Option<(Opening, Span)>,
    pub(super) working_set: Option<(u64, Span)>,
    /// Whether it goes through the files of a fileset and leaves each open.
    pub(super) keeps_open: bool,
    /// Flowops by which others go.
    targets: Vec<At<String>>,
    /// By handle, the fileset that was opened in it last, and whether it is open.
    handles: BTreeMap<u32, (usize, bool)>,
}

impl Flow {
    pub(super) fn steps(
        &mut self,
        flowops: &[Flowop],
        scope: &Scope,
        world: &World<'_>,
        report: &mut Report,
    ) -> Vec<Step> {
        let steps = self.of(flowops, scope, world, (0, ""), report);
        let names: Vec<&str> = Step::actions(&steps).iter().map(|action| action.name.as_str()).collect();
        for target in self.targets.drain(..).filter(|target| !names.contains(&target.value.as_str())) {
            report.push(
                Diagnostic::error(
                    target.span,
                    format!("no flowop of this thread that works on files is called `{}`", target.value),
                )
                .did_you_mean(&target.value, names.iter().copied()),
            );
        }
        steps
    }

    fn of(
        &mut self,
        flowops: &[Flowop],
        scope: &Scope,
        world: &World<'_>,
        (depth, prefix): (usize, &str),
        report: &mut Report,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        for flowop in flowops {
            let of = Attributes::new(&flowop.attributes, scope);
            let Some(name) = of.text("name", report) else {
                report.push(Diagnostic::error(flowop.kind.span, "this flowop has no name").help("name=openfile1"));
                continue;
            };
            let times = of.number("iters", 1, report);
            if times == 0 {
                continue;
            }
            let name = format!("{prefix}{}", name.value);
            if let Some(composite) = world.composites.get(&flowop.kind.value) {
                if depth == MAXIMUM_DEPTH {
                    report.push(Diagnostic::error(flowop.kind.span, "this flowop contains itself"));
                    continue;
                }
                let inner_scope = scope.with(&composite.locals, &flowop.locals, report);
                let own = Attributes::new(&composite.attributes, &inner_scope).number("iters", 1, report);
                let inner = self.of(&composite.flowops, &inner_scope, world, (depth + 1, &format!("{name}.")), report);
                let times = if of.get("iters").is_some() { times } else { own };
                if times == 1 || Step::actions(&inner).is_empty() {
                    steps.extend(inner);
                } else {
                    steps.push(Step::Repeat { times, steps: inner });
                }
                continue;
            }
            if !FLOWOPS.contains(&flowop.kind.value.as_str()) {
                let own = world.composites.keys().map(String::as_str);
                report.push(
                    Diagnostic::error(flowop.kind.span, format!("unknown flowop `{}`", flowop.kind.value))
                        .label("filebench has none of this name, and none is defined before this")
                        .did_you_mean(&flowop.kind.value, FLOWOPS.iter().copied().chain(own)),
                );
                continue;
            }
            let one = One { of, name, kind: &flowop.kind, times };
            if let Some(found) = self.one(&one, world, report) {
                steps.extend(found);
            }
        }
        steps
    }

    fn one(&mut self, one: &One<'_>, world: &World<'_>, report: &mut Report) -> Option<Vec<Step>> {
        let kind = one.kind.value.as_str();
        if let Some(step) = self.control(one, world, report) {
            return step;
        }
        if one.of.flag("noreadahead", report) {
            report.push(
                Diagnostic::error(one.of.span("noreadahead", one.kind.span), "`noreadahead` is not done")
                    .help("leave it out, or turn readahead off for the device"),
            );
        }
        if kind == "aiowait" {
            report.push(
                Diagnostic::warning(one.kind.span, "`aiowait` waits for nothing here")
                    .note("`aiowrite` is done as `write`, which has returned by now"),
            );
            return None;
        }
        if kind == "aiowrite" {
            report.push(
                Diagnostic::warning(one.kind.span, "`aiowrite` is done as `write`")
                    .note("one at a time, where filebench has the C library's threads write many at once"),
            );
        }
        if kind == "fsyncset" {
            return Some(self.fsync_set(one, world, report));
        }
        let action = self.action(one, world, report)?;
        Some(vec![Step::Perform { action, times: one.times }])
    }

    fn action(&mut self, one: &One<'_>, world: &World<'_>, report: &mut Report) -> Option<Action> {
        let kind = one.kind.value.as_str();
        let handle = self.handle(one, kind, report)?;
        let fileset = self.fileset(one, handle, world, report)?;
        let files = &world.files[fileset];
        self.follow(one, kind, handle, fileset, report);
        let wanted = matches!(kind, "makedir" | "removedir");
        if wanted != files.leafdirs && (wanted || !matches!(kind, "listdir")) {
            let (problem, cure) = if wanted {
                ("has no leaf directories", "define it with leafdirs=… in place of entries=…")
            } else {
                ("has leaf directories, and no files", "name a fileset that is defined with entries=…")
            };
            report.push(
                Diagnostic::error(one.kind.span, format!("`{}` {problem}", files.name))
                    .context(files.span, "defined here")
                    .help(cure),
            );
            return None;
        }
        let (operation, blocks) = self.operation(one, kind, files, world, report)?;
        // One file after the other, each of which stays open.
        let rotates = matches!(kind, "read" | "write" | "aiowrite") && one.of.flag("opennext", report);
        self.keeps_open |= rotates;
        let by_name = rotates
            || matches!(kind, "listdir" | "makedir" | "removedir")
            || (matches!(kind, "deletefile" | "statfile") && handle.is_none());
        let numbers = match one.of.amount("indexed", report) {
            Some(Amount::Drawn(random)) => {
                drawn(one.of.scope, &random, report).map(|drawn| drawn.numbers(files.entries))
            }
            Some(Amount::Fixed(number)) => Some(SizeDistribution::Fixed(number % files.entries.max(1))),
            None => None,
        };
        Some(Action {
            choice: if rotates { FileChoice::RoundRobin } else { FileChoice::Rotation },
            blocks,
            handle: if by_name { None } else { Some(handle.unwrap_or(0)) },
            numbers,
            ..Action::new(&one.name, operation, u32::try_from(fileset).ok())
        })
    }

    /// The handle that the flowop names, or takes without naming any; none where it goes by the file's name.
    fn handle(&self, one: &One<'_>, kind: &str, report: &mut Report) -> Option<Option<u32>> {
        let number = |name: &str, report: &mut Report| {
            let number = one.of.number(name, 0, report);
            if number >= u64::from(MAXIMUM_HANDLES) {
                report.push(
                    Diagnostic::error(one.of.span(name, one.kind.span), format!("there is no descriptor {number}"))
                        .label(format!("expected at most {}", MAXIMUM_HANDLES - 1)),
                );
            }
            u32::try_from(number).unwrap_or(0).min(MAXIMUM_HANDLES - 1)
        };
        let fd = one.of.get("fd").map(|_| number("fd", report));
        Some(match kind {
            "listdir" | "makedir" | "removedir" => None,
            // Descriptor 0 is filebench's for none.
            "deletefile" | "statfile" => fd.filter(|fd| *fd > 0),
            _ => Some(fd.unwrap_or(0)),
        })
    }

    /// The fileset that the flowop works on: its own, or that of what is open.
    fn fileset(&self, one: &One<'_>, handle: Option<u32>, world: &World<'_>, report: &mut Report) -> Option<usize> {
        let attribute = if one.of.get("filesetname").is_some() { "filesetname" } else { "filename" };
        if one.of.get(attribute).is_some() {
            let name = one.of.text(attribute, report)?;
            let found = world.files.iter().position(|files| files.name == name.value);
            if found.is_none() {
                report.push(
                    Diagnostic::error(name.span, format!("no file or fileset is called `{}`", name.value))
                        .did_you_mean(&name.value, world.files.iter().map(|files| files.name.as_str()))
                        .help(format!("define fileset name={},…", name.value)),
                );
            }
            return found;
        }
        if let Some((fileset, _)) = handle.and_then(|handle| self.handles.get(&handle)) {
            return Some(*fileset);
        }
        let (fd, kind) = (handle.unwrap_or(0), &one.kind.value);
        report.push(
            Diagnostic::error(one.kind.span, format!("`{kind}` has no file to work on"))
                .label(format!("nothing was opened as fd={fd} before, and no filesetname is given"))
                .help("filesetname=bigfileset"),
        );
        None
    }

    /// Follows what is open, and refuses what would be an error of filebench's in its first round.
    fn follow(&mut self, one: &One<'_>, kind: &str, handle: Option<u32>, fileset: usize, report: &mut Report) {
        let Some(handle) = handle else { return };
        let open = self.handles.get(&handle).is_some_and(|(_, open)| *open);
        let place = one.of.span("fd", one.kind.span);
        match kind {
            "openfile" | "createfile" => {
                if open && !one.of.flag("opennext", report) {
                    report.push(
                        Diagnostic::error(place, format!("fd={handle} is still open"))
                            .help("put a closefile before it"),
                    );
                }
                self.opens(one, report);
                self.handles.insert(handle, (fileset, true));
            }
            "closefile" => {
                if !open {
                    report.push(Diagnostic::error(place, format!("nothing is open as fd={handle}")));
                }
                self.handles.insert(handle, (fileset, false));
            }
            "fsync" if !open => {
                report.push(
                    Diagnostic::error(place, format!("nothing is open as fd={handle}"))
                        .help("put an openfile before it"),
                );
            }
            "deletefile" | "statfile" | "fsync" => {}
            _ => {
                if !open {
                    self.opens(one, report);
                }
                self.handles.insert(handle, (fileset, true));
            }
        }
    }

    /// Notes how the flowop opens files, which a thread does in one way.
    fn opens(&mut self, one: &One<'_>, report: &mut Report) {
        let opening = Opening { direct: one.of.flag("directio", report), dsync: one.of.flag("dsync", report) };
        match self.opening {
            None => self.opening = Some((opening, one.kind.span)),
            Some((first, place)) if first != opening => report.push(
                Diagnostic::error(one.kind.span, "a thread that opens files in two ways")
                    .label("`dsync` or `directio` is not as before")
                    .context(place, "opened otherwise here")
                    .help("give each way a thread of its own"),
            ),
            Some(_) => {}
        }
    }

    fn operation(
        &mut self,
        one: &One<'_>,
        kind: &str,
        files: &Files,
        world: &World<'_>,
        report: &mut Report,
    ) -> Option<(Operation, Option<SizeDistribution>)> {
        let plain = |operation| Some((operation, None));
        match kind {
            "openfile" => return plain(Operation::Open),
            "createfile" => return plain(Operation::Create { block_bytes: 0, fsync: false }),
            "closefile" => return plain(Operation::Close),
            "deletefile" => return plain(Operation::Unlink),
            "statfile" => return plain(Operation::Stat),
            "fsync" => return plain(Operation::Fsync),
            "listdir" => return plain(Operation::Readdir),
            "makedir" => return plain(Operation::Mkdir),
            "removedir" => return plain(Operation::Rmdir),
            _ => {}
        }
        let whole = matches!(kind, "readwholefile" | "writewholefile");
        let (block, mut blocks) = match one.of.amount("iosize", report) {
            Some(Amount::Fixed(size)) => (size, None),
            Some(Amount::Drawn(random)) => {
                let most = if world.memory > 0 { world.memory } else { 1 << 30 };
                match drawn(one.of.scope, &random, report)?.blocks(most) {
                    SizeDistribution::Fixed(size) => (size, None),
                    list => (list.block_bounds().map_or(1, |(_, largest)| largest), Some(list)),
                }
            }
            None => (0, None),
        };
        if block == 0 && !whole {
            report.push(
                Diagnostic::error(one.of.span("iosize", one.kind.span), format!("`{kind}` of how much?"))
                    .help("iosize=8k"),
            );
            return None;
        }
        // Without a size filebench moves a file in one piece.
        let block = if block == 0 { files.typical.clamp(WHOLE_BLOCK, 1 << 30) } else { block.min(1 << 30) };
        if kind == "appendfilerand" && blocks.is_none() {
            blocks = Some(SizeDistribution::Uniform { minimum: 1, maximum: block + 1 });
        }
        let random = one.of.flag("random", report);
        let working_set = one.of.number("workingset", 0, report);
        let reads = kind == "read" || kind == "readwholefile";
        let pattern = if random && !whole {
            self.within(working_set, one, report);
            // Where sizes are drawn, places are multiples of the smallest.
            let align_bytes =
                blocks.as_ref().and_then(SizeDistribution::block_bounds).map_or(block, |(least, _)| least);
            Pattern::Random { distribution: Distribution::Uniform, align_bytes }
        } else if whole || kind.starts_with("append") {
            Pattern::FromStart
        } else {
            Pattern::Cursor { shared: false }
        };
        if random && block > files.typical && matches!(files.fileset.size, SizeDistribution::Fixed(_)) {
            report.push(
                Diagnostic::error(one.of.span("iosize", one.kind.span), "a block larger than the file")
                    .label(format!("`{}` has {} bytes", files.name, files.typical))
                    .context(files.span, "defined here"),
            );
        }
        let extent = if whole { Extent::Whole } else { Extent::Bytes(block) };
        let transfer = Transfer { extent, block_bytes: block, pattern, fsync: false };
        let operation = match kind {
            "writewholefile" => {
                let like = one.of.get("srcfd").map(|_| one.of.number("srcfd", 0, report));
                Operation::Fill { block_bytes: block, like: like.and_then(|like| u32::try_from(like).ok()) }
            }
            _ if reads => Operation::Read(transfer),
            "appendfile" | "appendfilerand" => Operation::Append(transfer),
            _ => Operation::Write(transfer),
        };
        Some((operation, blocks))
    }

    /// Notes the part of the files that a thread works on, which is one for all its flowops.
    fn within(&mut self, bytes: u64, one: &One<'_>, report: &mut Report) {
        let span = one.of.span("workingset", one.kind.span);
        match self.working_set {
            None => self.working_set = Some((bytes, span)),
            Some((first, place)) if first != bytes => report.push(
                Diagnostic::error(span, "a thread with two working sets")
                    .context(place, "the first")
                    .help("give each a thread"),
            ),
            Some(_) => {}
        }
    }

    fn fsync_set(&self, one: &One<'_>, world: &World<'_>, report: &mut Report) -> Vec<Step> {
        let Some(fileset) = self.fileset(one, None, world, report) else { return Vec::new() };
        let open = self.handles.iter().filter(|(_, (of, open))| *of == fileset && *open);
        open.map(|(handle, _)| Step::Perform {
            action: Action {
                choice: FileChoice::Rotation,
                handle: Some(*handle),
                ..Action::new(&one.name, Operation::Fsync, u32::try_from(fileset).ok())
            },
            times: one.times,
        })
        .collect()
    }

    /// The step of a flowop that does nothing with files; `None` for all others, and `Some(None)` where there is none to do.
    fn control(&mut self, one: &One<'_>, world: &World<'_>, report: &mut Report) -> Option<Option<Vec<Step>>> {
        let value = |report: &mut Report| one.of.number("value", 0, report);
        let target = |report: &mut Report| one.of.text("target", report);
        let mut pace = |unit, report: &mut Report| {
            let per_second = world.rate?;
            let of = if unit == PaceUnit::Rounds { None } else { target(report) };
            self.targets.extend(of.clone());
            Some(Step::Pace { per_second, unit, of: of.map(|of| of.value) })
        };
        let step = match one.kind.value.as_str() {
            "eventlimit" => pace(PaceUnit::Rounds, report),
            "opslimit" => pace(PaceUnit::Operations, report),
            "iopslimit" => pace(PaceUnit::Transfers, report),
            "bwlimit" => pace(PaceUnit::Mebibytes, report),
            "finishoncount" | "finishonbytes" => {
                let unit = if one.kind.value == "finishoncount" { FinishUnit::Operations } else { FinishUnit::Bytes };
                let of = target(report);
                // Without a target all threads of the process count, and here those of all its instances.
                let processes = if of.is_none() { world.processes } else { 1 };
                self.targets.extend(of.clone());
                Some(Step::Finish { count: value(report).saturating_mul(processes), unit, of: of.map(|of| of.value) })
            }
            "delay" => Some(Step::Pause(Duration::from_secs(value(report)))),
            "hog" => Some(Step::Spin(value(report).max(1))),
            "semblock" => Some(Step::Wait {
                name: one.name.clone(),
                posts: value(report).max(1),
                ahead: Some(one.of.number("highwater", 1, report)),
                once: false,
            }),
            "block" => Some(Step::Wait { name: one.name.clone(), posts: 1, ahead: None, once: true }),
            "sempost" | "wakeup" => {
                let Some(to) = target(report) else {
                    report.push(
                        Diagnostic::error(one.kind.span, format!("`{}` of what?", one.kind.value))
                            .help("target=lg-block"),
                    );
                    return Some(None);
                };
                let posts = if one.kind.value == "wakeup" { 1 } else { value(report).max(1) };
                Some(Step::Post { to: to.value, posts, bounded: one.of.flag("blocking", report) })
            }
            "print" | "testrandvar" => None,
            _ => return None,
        };
        let Some(step) = step else { return Some(None) };
        Some(Some(match one.times {
            1 => vec![step],
            times => std::iter::repeat_n(step, usize::try_from(times.min(1000)).unwrap_or(1)).collect(),
        }))
    }
}

struct One<'a> {
    of: Attributes<'a>,
    name: String,
    kind: &'a At<String>,
    times: u64,
}
