//! The 4.x dialect, rewritten as the sections that say the same.
//!
//! FFSB reads these settings in one fixed order and silently loses whatever stands elsewhere; here any order will do.

use super::{
    findings::Findings,
    keyword::{Part, canonical},
    lines::{Piece, Shape, lines},
    sections::{Section, Setting, Value},
};
use crate::{
    Span,
    diagnostic::{Diagnostic, Severity, closest},
};

/// Ageing writes this much at a time; 4.x cannot say otherwise.
const AGEING_WRITE: u64 = 4096;

#[derive(Clone, Copy)]
enum Meaning {
    Global(&'static str),
    Filesystem(&'static str),
    Group(&'static str),
    Ageing(&'static str),
    Location,
    Utilization,
    NumConfigs,
    /// A switch of the threadgroup: whether the number is more than 0.
    GroupFlag(&'static str),
    WriteSize,
    /// Ignored with a warning when more than 0.
    Iterations,
    /// Has no effect in FFSB either.
    Nothing,
}

use Meaning::{
    Ageing, Filesystem, Global, Group, GroupFlag, Iterations, Location, Nothing, NumConfigs, Utilization, WriteSize,
};

/// The settings, and the section they belong to.
static SETTINGS: &[(&str, bool, Meaning)] = &[
    ("numconfigs", false, NumConfigs),
    ("numfiles", false, Filesystem("num_files")),
    ("maxfilesize", false, Filesystem("max_filesize")),
    ("minfilesize", false, Filesystem("min_filesize")),
    ("numdirs", false, Filesystem("num_dirs")),
    ("utilization", false, Utilization),
    ("initialcreateweight", false, Ageing("create_weight")),
    ("initialdeleteweight", false, Ageing("delete_weight")),
    ("location", false, Location),
    ("directio", false, Global("directio")),
    ("bufferedio", false, Nothing),
    ("verbose", false, Nothing),
    ("reage", false, Nothing),
    ("threads", true, Group("num_threads")),
    ("iterations", true, Iterations),
    ("readsize", true, Group("read_size")),
    ("readblocksize", true, Group("read_blocksize")),
    ("readseeksize", true, GroupFlag("read_random")),
    ("writesize", true, WriteSize),
    ("readweight", true, Group("read_weight")),
    ("writeweight", true, Group("append_weight")),
    ("createweight", true, Group("create_weight")),
    ("deleteweight", true, Group("delete_weight")),
    ("metaweight", true, Group("metaop_weight")),
];

pub(super) fn spelling(keyword: &'static str) -> &'static str {
    let means = |meaning: &Meaning| match *meaning {
        Global(name) | Filesystem(name) | Group(name) | GroupFlag(name) | Ageing(name) => name == keyword,
        WriteSize => matches!(keyword, "write_size" | "write_blocksize"),
        Utilization => matches!(keyword, "agefs" | "desired_util"),
        Location | NumConfigs | Iterations | Nothing => false,
    };
    SETTINGS.iter().rev().find(|(.., meaning)| means(meaning)).map_or(keyword, |(name, ..)| name)
}

pub(super) fn read(text: &str, findings: &mut Findings) -> Section {
    let start = Span::default();
    let mut reader = Reader {
        findings,
        global: Section::new(Part::Global, start),
        filesystem: Section::new(Part::Filesystem, start),
        ageing: Section::new(Part::Threadgroup, start),
        group: None,
    };
    for line in lines(text) {
        if reader.findings.is_full() {
            break;
        }
        match line.shape() {
            Shape::Section { name, number } if name.text == "config" => reader.config(line.span, number),
            Shape::Section { name, .. } => reader.findings.push(
                Diagnostic::error(name.span, format!("unknown section `{}`", name.text))
                    .label("expected [config0], the only section of an FFSB 4 profile"),
            ),
            Shape::Setting { key, rest, assigned: true } => reader.setting(key, rest.without_comment().word().0),
            Shape::Setting { key, .. } => {
                reader.findings.push(Diagnostic::error(key.span, "expected `=` after the keyword"));
            }
        }
    }
    reader.finish()
}

struct Reader<'f> {
    findings: &'f mut Findings,
    global: Section,
    filesystem: Section,
    ageing: Section,
    /// `[config0]`, once it has begun.
    group: Option<Section>,
}

impl Reader<'_> {
    fn config(&mut self, span: Span, number: Option<u64>) {
        if self.group.is_some() || number.is_some_and(|number| number != 0) {
            self.findings.push(
                Diagnostic::error(span, "more than one [config]")
                    .label("FFSB never ran more than [config0]")
                    .help("give each its [threadgroup] in a 6.0 profile"),
            );
        }
        self.group.get_or_insert_with(|| Section::new(Part::Threadgroup, span));
    }

    fn setting(&mut self, key: Piece<'_>, word: Piece<'_>) {
        let in_group = self.group.is_some();
        let Some((_, _, meaning)) = SETTINGS.iter().find(|(name, group, _)| *name == key.text && *group == in_group)
        else {
            self.unknown(key, in_group);
            return;
        };
        let number = match meaning {
            Location => None,
            Utilization => Some(0),
            _ => word.text.parse::<u64>().ok(),
        };
        let span = if word.text.is_empty() { key.span } else { word.span };
        let share = word.text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        let expected = match meaning {
            Location if word.text.is_empty() => Some("a directory"),
            Utilization if share.is_none() => Some("a share from 0 to 1, such as 0.2"),
            Location | Utilization => None,
            _ if number.is_none() => Some("a whole number"),
            _ => None,
        };
        if let Some(expected) = expected {
            self.findings.push(
                Diagnostic::error(span, format!("not a value for `{}`", key.text))
                    .label(format!("expected {expected}")),
            );
            self.botch(*meaning);
            return;
        }
        self.mean(*meaning, number.unwrap_or(0), share.unwrap_or(0.0), word, span);
    }

    fn mean(&mut self, meaning: Meaning, number: u64, share: f64, word: Piece<'_>, span: Span) {
        let group = self.group.as_mut();
        match meaning {
            Global(name) => set(&mut self.global, name, Value::Number(number.min(1)), span),
            Filesystem(name) => set(&mut self.filesystem, name, Value::Number(number), span),
            Ageing(name) => set(&mut self.ageing, name, Value::Number(number), span),
            Location => set(&mut self.filesystem, "location", Value::Text(word.text.to_owned()), span),
            Utilization if share > 0.0 => {
                set(&mut self.filesystem, "agefs", Value::Number(1), span);
                set(&mut self.filesystem, "desired_util", Value::Share(share), span);
            }
            NumConfigs if number != 1 => {
                self.findings.push(Diagnostic::error(span, "not the number of configs").label("expected 1"));
            }
            Iterations if number > 0 => self.findings.push_with(Severity::Warning, || {
                Diagnostic::warning(span, "`iterations` is ignored: the run time ends the run, as since FFSB 4.1")
            }),
            Group(name) => group.into_iter().for_each(|group| set(group, name, Value::Number(number), span)),
            GroupFlag(name) => {
                group.into_iter().for_each(|group| set(group, name, Value::Number(u64::from(number > 0)), span));
            }
            // 4.x writes in one piece.
            WriteSize => group.into_iter().for_each(|group| {
                set(group, "write_size", Value::Number(number), span);
                set(group, "write_blocksize", Value::Number(number), span);
            }),
            Utilization | NumConfigs | Iterations | Nothing => {}
        }
    }

    fn unknown(&mut self, key: Piece<'_>, in_group: bool) {
        let place = |group| if group { "[config0]" } else { "the part before [config0]" };
        let mut diagnostic =
            Diagnostic::error(key.span, format!("unknown keyword `{}` in {}", key.text, place(in_group)));
        diagnostic = if SETTINGS.iter().any(|(name, ..)| *name == key.text) {
            diagnostic.help(format!("it belongs to {}", place(!in_group)))
        } else {
            let here = || SETTINGS.iter().filter(|(_, group, _)| *group == in_group);
            let meant = closest(key.text, here().map(|(name, ..)| *name));
            if let Some((.., meaning)) = here().find(|(name, ..)| Some(*name) == meant) {
                self.botch(*meaning);
            }
            match meant {
                Some(name) => diagnostic.help(format!("did you mean `{name}`?")),
                None => diagnostic,
            }
        };
        self.findings.push(diagnostic.note("this is read as a profile of FFSB 4"));
    }

    fn botch(&mut self, meaning: Meaning) {
        let (section, names): (Option<&mut Section>, &[&'static str]) = match meaning {
            Filesystem(name) => (Some(&mut self.filesystem), &[name]),
            Location => (Some(&mut self.filesystem), &["location"]),
            Group(name) | GroupFlag(name) => (self.group.as_mut(), &[name]),
            WriteSize => (self.group.as_mut(), &["write_size", "write_blocksize"]),
            Global(_) | Ageing(_) | Utilization | NumConfigs | Iterations | Nothing => (None, &[]),
        };
        section.into_iter().for_each(|section| section.botched.extend(names));
    }

    fn finish(self) -> Section {
        let Self { findings, mut global, mut filesystem, mut ageing, group } = self;
        if filesystem.flag("agefs") {
            let span = filesystem.span_of("agefs");
            for (name, value) in [("num_threads", 1), ("write_size", AGEING_WRITE), ("write_blocksize", AGEING_WRITE)] {
                set(&mut ageing, name, Value::Number(value), span);
            }
            ageing.header = span;
            filesystem.children.push(ageing);
        }
        global.children.push(filesystem);
        match group {
            Some(group) => global.children.push(group),
            None => findings.push(Diagnostic::whole("the profile has no [config0]")),
        }
        global
    }
}

fn set(section: &mut Section, name: &'static str, value: Value, span: Span) {
    section.set(Setting { keyword: canonical(section.part, name), value, span });
}
