//! The steps of a program. Their keys, how they are read, and how they are printed.

use super::{
    action::{self, ActionSurface, Role},
    lines::{self, KeyValues},
    value::{bytes, flag, or, text, word},
};
use crate::{
    decode::{At, Count, Decode, Field, Flag, Listed, Node, Real, Size, Text, Time, table},
    diagnostic::{Diagnostic, Report},
};
use fstone_model::workload::{Fileset, FinishUnit, MAXIMUM_STEPS, PaceUnit, Step};
use serde_json::{Value, json};

type Number = Count<1, { u64::MAX }>;

table! {
    /// A step of a program: an action, or something between actions that is no operation of the load.
    pub(crate) struct StepSurface {
        /// An action.
        "do" => do_: ActionSurface;
        /// How many times in a row the action runs. Once unless given.
        "times" => times: Number;
        /// Steps to repeat.
        "repeat" => repeat: RepeatSurface;
        /// Ends the thread once this much is done.
        "finish" => finish: FinishSurface;
        /// The thread waits until there have been as many events as it has used.
        "pace" => pace: PaceSurface;
        /// The thread sleeps for this long.
        "pause" => pause: Time;
        /// The thread writes to memory this many times.
        "spin" => spin: Number;
        /// The thread waits for posts.
        "wait" => wait: WaitSurface;
        /// Posts to all threads that wait under a name.
        "post" => post: PostSurface;
    }
    one of ["do", "repeat", "finish", "pace", "pause", "spin", "wait", "post"]
}

table! {
    /// Steps to repeat.
    pub(crate) struct RepeatSurface {
        /// How many times.
        "times" => times: Number, required;
        /// The steps.
        "steps" => steps: InnerSteps, required;
    }
}

/// Steps within a step. Their schema is that of the program's own, which cannot hold itself.
#[derive(Debug, Clone)]
pub(crate) struct InnerSteps(pub(crate) Vec<At<StepSurface>>);

impl Decode for InnerSteps {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        Vec::<At<StepSurface>>::decode(node, report).map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": { "type": "object" } })
    }

    fn expected() -> String {
        "a list of steps".into()
    }
}

table! {
    /// When a thread is done.
    pub(crate) struct FinishSurface {
        /// After this many operations.
        "operations" => operations: Count<0, { u64::MAX }>;
        /// After more than this many bytes.
        "bytes" => bytes: Size;
        /// Counts only the thread's own actions of this name. Unless given, everything that the threads of the group, or of its `process`, did counts.
        "of" => of: Text;
    }
    one of ["operations", "bytes"]
}

table! {
    /// Events that hold a thread back. All steps of a phase share them.
    pub(crate) struct PaceSurface {
        /// Events per second.
        "rate" => rate: Real, required;
        /// What consumes an event: each pass through the step ("rounds", the default), the thread's "operations", its operations that move data ("transfers"), or "mebibytes" moved.
        "per" => per: Listed<PaceUnit>;
        /// Counts only actions of this name. Unless given, everything that the thread did counts.
        "of" => of: Text;
    }
}

table! {
    /// Waiting for posts.
    pub(crate) struct WaitSurface {
        /// The name to which posts are sent. Every waiting thread has its own posts.
        "name" => name: Text, required;
        /// How many posts to wait for and consume. 1 unless given.
        "posts" => posts: Number;
        /// How many posts may be pending before bounded posters wait. No limit unless given.
        "ahead" => ahead: Count<0, { u64::MAX }>;
        /// Whether posts that arrive before the wait count as one. False unless given.
        "once" => once: Flag;
    }
}

table! {
    /// Posting to threads that wait.
    pub(crate) struct PostSurface {
        /// The name under which the threads wait.
        "to" => to: Text, required;
        /// How many posts. 1 unless given.
        "posts" => posts: Number;
        /// Whether to wait while too many posts are pending. False unless given.
        "bounded" => bounded: Flag;
    }
}

const MAXIMUM_DEPTH: usize = 16;

/// The steps of a program; reports those that lead nowhere.
pub(super) fn program(field: &Field<Vec<At<StepSurface>>>, filesets: &[&str], report: &mut Report) -> Vec<Step> {
    let steps = steps(&field.value, filesets, 0, report);
    if Step::actions(&steps).is_empty() {
        report
            .push(Diagnostic::error(field.span, "a program needs something to do").label("expected at least one `do`"));
    }
    if Step::all(&steps).len() > MAXIMUM_STEPS {
        report.push(
            Diagnostic::error(field.span, "too many steps").label(format!("a program has at most {MAXIMUM_STEPS}")),
        );
    }
    for name in surfaces(&field.value).iter().filter_map(|step| of(step)) {
        let known = Step::actions(&steps);
        if !known.iter().any(|action| action.name == name.value.0) {
            let diagnostic =
                Diagnostic::error(name.span, format!("there is no action `{}` in this program", name.value.0))
                    .did_you_mean(&name.value.0, known.iter().map(|action| action.name.as_str()));
            report.push(diagnostic);
        }
    }
    steps
}

/// The name of the actions that a step goes by.
fn of(step: &StepSurface) -> Option<&Field<Text>> {
    let finish = step.finish.as_ref().and_then(|field| field.value.of.as_ref());
    finish.or_else(|| step.pace.as_ref().and_then(|field| field.value.of.as_ref()))
}

/// Every step as it is written, those within others included.
pub(super) fn surfaces(steps: &[At<StepSurface>]) -> Vec<&StepSurface> {
    let mut found = Vec::new();
    for step in steps {
        found.push(&step.value);
        if let Some(inner) = step.value.repeat.as_ref().and_then(|field| field.value.steps.as_ref()) {
            found.extend(surfaces(&inner.value.0));
        }
    }
    found
}

fn steps(surfaces: &[At<StepSurface>], filesets: &[&str], depth: usize, report: &mut Report) -> Vec<Step> {
    surfaces.iter().filter_map(|at| step(at, filesets, depth, report)).collect()
}

fn step(at: &At<StepSurface>, filesets: &[&str], depth: usize, report: &mut Report) -> Option<Step> {
    let surface = &at.value;
    if let Some(field) = surface.times.as_ref().filter(|_| surface.do_.is_none()) {
        report.push(Diagnostic::error(field.key, "`times` is for a `do`").label("it would change nothing"));
    }
    if let Some(Field { value, .. }) = &surface.do_ {
        let times = or(surface.times.as_ref(), 1, |Count(times)| times);
        return Some(Step::Perform { action: performed(value, filesets, report), times });
    }
    if let Some(Field { span, value, .. }) = &surface.repeat {
        if depth == MAXIMUM_DEPTH {
            report.push(Diagnostic::error(*span, format!("steps within steps, {MAXIMUM_DEPTH} levels deep")));
            return None;
        }
        let inner = value.steps.as_ref().map_or(&[][..], |field| &field.value.0);
        let steps = steps(inner, filesets, depth + 1, report);
        if Step::actions(&steps).is_empty() {
            report
                .push(Diagnostic::error(*span, "nothing is done again").label("expected at least one `do` in `steps`"));
        }
        return Some(Step::Repeat { times: or(value.times.as_ref(), 1, |Count(times)| times), steps });
    }
    if let Some(Field { value, .. }) = &surface.finish {
        return Some(finish(value));
    }
    if let Some(Field { value, .. }) = &surface.pace {
        return Some(pace(value, report));
    }
    if let Some(Field { value, .. }) = &surface.pause {
        return Some(Step::Pause(value.0));
    }
    if let Some(Field { value: Count(times), .. }) = surface.spin {
        return Some(Step::Spin(times));
    }
    if let Some(Field { value, .. }) = &surface.wait {
        return Some(Step::Wait {
            name: text(value.name.as_ref(), ""),
            posts: or(value.posts.as_ref(), 1, |Count(posts)| posts),
            ahead: value.ahead.as_ref().map(|field| field.value.0),
            once: flag(value.once.as_ref(), false),
        });
    }
    let Field { value, .. } = surface.post.as_ref()?;
    Some(Step::Post {
        to: text(value.to.as_ref(), ""),
        posts: or(value.posts.as_ref(), 1, |Count(posts)| posts),
        bounded: flag(value.bounded.as_ref(), false),
    })
}

fn performed(surface: &ActionSurface, filesets: &[&str], report: &mut Report) -> fstone_model::workload::Action {
    action::read(surface, filesets, Role::Program, report)
}

fn finish(surface: &FinishSurface) -> Step {
    let of = surface.of.as_ref().map(|field| field.value.0.clone());
    match &surface.operations {
        Some(Field { value: Count(count), .. }) => Step::Finish { count: *count, unit: FinishUnit::Operations, of },
        None => Step::Finish { count: bytes(surface.bytes.as_ref()), unit: FinishUnit::Bytes, of },
    }
}

fn pace(surface: &PaceSurface, report: &mut Report) -> Step {
    let per_second = or(surface.rate.as_ref(), 1.0, |Real(rate)| rate);
    if let Some(field) = surface.rate.as_ref().filter(|_| !(per_second.is_finite() && per_second > 0.0)) {
        report.push(Diagnostic::error(field.span, "a rate is above 0"));
    }
    let of = surface.of.as_ref().map(|field| field.value.0.clone());
    Step::Pace { per_second, unit: word(surface.per.as_ref(), PaceUnit::Rounds), of }
}

pub(super) fn print(step: &Step, filesets: &[Fileset]) -> KeyValues {
    let of = |of: &Option<String>| of.as_deref().map(lines::quoted);
    let count = |usual: u64, count: u64| lines::unless(count == usual, || count.to_string());
    let (key, value) = match step {
        Step::Perform { action: performed, times } => {
            return lines::wanted([
                ("do", Some(lines::inline(&action::print(performed, filesets)))),
                ("times", count(1, *times)),
            ]);
        }
        Step::Repeat { times, steps } => {
            let steps: Vec<String> = steps.iter().map(|one| lines::inline(&print(one, filesets))).collect();
            let keys = vec![("times", times.to_string()), ("steps", format!("[{}]", steps.join(", ")))];
            ("repeat", lines::inline(&keys))
        }
        Step::Finish { count, unit: FinishUnit::Operations, of: name } => {
            ("finish", lines::inline(&lines::wanted([("operations", Some(count.to_string())), ("of", of(name))])))
        }
        Step::Finish { count, unit: FinishUnit::Bytes, of: name } => {
            ("finish", lines::inline(&lines::wanted([("bytes", Some(lines::size(*count))), ("of", of(name))])))
        }
        Step::Pace { per_second, unit, of: name } => {
            let unit = lines::unless(*unit == PaceUnit::Rounds, || lines::word(unit));
            (
                "pace",
                lines::inline(&lines::wanted([
                    ("rate", Some(lines::real(*per_second))),
                    ("per", unit),
                    ("of", of(name)),
                ])),
            )
        }
        Step::Pause(pause) => ("pause", lines::time(*pause)),
        Step::Spin(times) => ("spin", times.to_string()),
        Step::Wait { name, posts, ahead, once } => {
            let keys = [
                ("name", Some(lines::quoted(name))),
                ("posts", count(1, *posts)),
                ("ahead", ahead.map(|ahead| ahead.to_string())),
                ("once", lines::flag(*once)),
            ];
            ("wait", lines::inline(&lines::wanted(keys)))
        }
        Step::Post { to, posts, bounded } => {
            let keys =
                [("to", Some(lines::quoted(to))), ("posts", count(1, *posts)), ("bounded", lines::flag(*bounded))];
            ("post", lines::inline(&lines::wanted(keys)))
        }
    };
    vec![(key, value)]
}
