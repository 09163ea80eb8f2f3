//! What may stand on fio's command line: its own options, job files, and jobs that are written there.

use super::{
    COMMAND_LINE, Findings, Options, Plan, options, plan,
    read::ENGINES,
    text::{Section, Setting, Word, sections},
    value,
};
use crate::{
    Diagnostics, Source, Span,
    diagnostic::{Diagnostic, Report},
    loads::Loader,
};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Help,
    /// The I/O engines that there are.
    Engines,
    Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Normal,
    Terse,
    Json,
    JsonPlus,
}

/// What `--idle-prof` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleProfile {
    /// No job is run.
    Calibrate,
    System,
    PerCpu,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub formats: Vec<OutputFormat>,
    /// A file; standard output without one.
    pub file: Option<String>,
    /// The version of the terse format, 2 to 5.
    pub terse: u8,
    pub idle: Option<IdleProfile>,
    /// How often all results so far are printed while the jobs run.
    pub status_every: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct CommandLine {
    pub asked: Option<Asked>,
    pub output: Output,
    pub files: Vec<String>,
    pub sections: Vec<String>,
    pub seed: Option<u64>,
    pub parse_only: bool,
    pub show_command: bool,
    /// Whether a terminal shows how far the jobs are.
    pub shows_progress: bool,
    /// No job may change data.
    pub read_only: bool,
    /// Devices that may be overwritten, and those whose data may be lost.
    pub allow_destroy: Vec<String>,
    pub allow_destroy_data: Vec<String>,
    /// Submit all requests that a queue has room for together, unless a job says how many.
    batches: bool,
    source: Source,
    jobs: Vec<Section>,
    warnings: Vec<Diagnostic>,
}

/// fio's own options that are taken without effect, and whether they have a value.
const WITHOUT_EFFECT: &[(&str, bool)] = &[
    ("eta-newline", true),
    ("eta-interval", true),
    ("max-jobs", true),
    ("alloc-size", true),
    ("debug", true),
    ("aux-path", true),
    ("warnings-fatal", false),
];

/// Those that are refused, whether they have a value, and what to do instead.
const REFUSED: &[(&str, bool, &str)] = &[
    ("bandwidth-log", false, "write_bw_log=NAME logs each job's bandwidth"),
    ("client", true, NO_SERVER),
    ("cmdhelp", false, "`fstone fio --help` lists the options"),
    ("cpuclock-test", false, "run it with fio itself"),
    ("crctest", false, "fstone has no checksums to compare; run it with fio itself"),
    ("daemonize", true, NO_SERVER),
    ("inflate-log", true, "fstone compresses no logs; inflate fio's with fio itself"),
    ("merge-blktrace-only", false, "fstone merges no traces; do that with fio itself"),
    ("remote-config", true, NO_SERVER),
    ("server", false, NO_SERVER),
    ("trigger", true, NO_TRIGGER),
    ("trigger-file", true, NO_TRIGGER),
    ("trigger-remote", true, NO_SERVER),
    ("trigger-timeout", true, NO_TRIGGER),
];
const NO_SERVER: &str = "fstone has no fio server; run it on that host";
const NO_TRIGGER: &str = "leave it out; the step `power-cut` of a study checks what power cuts would have left";

/// fio's own options, without those of [`WITHOUT_EFFECT`] and [`REFUSED`], and whether they have a value.
const OWN: &[(&str, bool)] = &[
    ("allow-destroy", true),
    ("allow-destroy-data", true),
    ("append-terse", false),
    ("batches", false),
    ("enghelp", false),
    ("eta", true),
    ("help", false),
    ("idle-prof", true),
    ("minimal", false),
    ("output", true),
    ("output-format", true),
    ("parse-only", false),
    ("readonly", false),
    ("section", true),
    ("seed", true),
    ("showcmd", false),
    ("status-interval", true),
    ("terse-version", true),
    ("version", false),
];

/// Reads what stands behind `fio`.
///
/// # Errors
/// What is wrong with fio's own options. Options of jobs are read with the jobs.
pub fn parse_command_line(words: &[String]) -> Result<CommandLine, Diagnostics> {
    let source = Source::new(COMMAND_LINE, words.join(" "));
    let mut reader = Reader {
        report: Report::new(source.clone()),
        line: CommandLine {
            asked: None,
            output: Output {
                formats: vec![OutputFormat::Normal],
                file: None,
                terse: 3,
                idle: None,
                status_every: None,
            },
            files: Vec::new(),
            sections: Vec::new(),
            seed: None,
            parse_only: false,
            show_command: false,
            shows_progress: true,
            read_only: false,
            allow_destroy: Vec::new(),
            allow_destroy_data: Vec::new(),
            batches: false,
            source,
            jobs: Vec::new(),
            warnings: Vec::new(),
        },
        append_terse: false,
    };
    let mut start = 0;
    let mut rest = words.iter().map(|word| {
        let at = start;
        start += word.len() + 1;
        (at, word.as_str())
    });
    while let Some((at, word)) = rest.next() {
        // As in fio, one dash is as good as two.
        let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-').filter(|option| option.len() > 1));
        let Some(option) = option.filter(|option| !option.is_empty()) else {
            match word {
                "-h" => reader.line.asked = Some(Asked::Help),
                "-v" => reader.line.asked = Some(Asked::Version),
                _ => reader.line.files.push(word.to_owned()),
            }
            continue;
        };
        let key_at = at + word.len() - option.len();
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some((key_at + key.len() + 1, value))),
            None => (option, None),
        };
        let span = Span::new(key_at, key_at + key.len());
        let Some(key) = reader.completed(key, span) else { continue };
        // A value may also be the next word.
        let value = value.or_else(|| if Reader::takes_value(key) { rest.next() } else { None });
        reader.option((Span::new(at, span.end), key), value);
    }
    if reader.append_terse && !reader.line.output.formats.contains(&OutputFormat::Terse) {
        reader.line.output.formats.insert(0, OutputFormat::Terse);
    }
    reader.report.finish(reader.line).map(|(line, _)| line)
}

fn own() -> impl Iterator<Item = (&'static str, bool)> {
    let refused = REFUSED.iter().map(|(name, value, _)| (*name, *value));
    OWN.iter().chain(WITHOUT_EFFECT).copied().chain(refused)
}

struct Reader {
    report: Report,
    line: CommandLine,
    append_terse: bool,
}

impl Reader {
    fn takes_value(key: &str) -> bool {
        match own().find(|(name, _)| *name == key) {
            Some((_, value)) => value,
            None => options::find(key).is_some_and(|option| !option.is_switch),
        }
    }

    /// The option that a word begins, if it is none itself, as getopt_long takes it. Aliases of one option are no two.
    fn completed<'k>(&mut self, key: &'k str, span: Span) -> Option<&'k str> {
        if own().any(|(name, _)| name == key) || options::find(key).is_some() {
            return Some(key);
        }
        let same = key.replace('-', "_");
        let known = own().map(|(name, _)| name).chain(options::names());
        let mut begun: Vec<&'static str> =
            known.filter(|name| name.starts_with(key) || name.starts_with(&same)).collect();
        begun.dedup_by_key(|name| options::find(name).map_or(*name, |option| option.name));
        match begun[..] {
            [name] => Some(name),
            [] => Some(key),
            _ => {
                let what = format!("--{key} is ambiguous");
                let names: Vec<String> = begun.iter().map(|name| format!("--{name}")).collect();
                self.report.push(Diagnostic::error(span, what).help(format!("write one of {}", names.join(", "))));
                None
            }
        }
    }

    fn option(&mut self, (key_span, key): (Span, &str), value: Option<(usize, &str)>) {
        let text = value.map_or("", |(_, value)| value);
        let place = value.map_or(key_span, |(at, value)| Span::new(at, at + value.len()));
        let mut wrong = |expected: &str| {
            self.report.push(
                Diagnostic::error(place, format!("not a value for --{key}")).label(format!("expected {expected}")),
            );
        };
        match key {
            "help" => self.line.asked = Some(Asked::Help),
            "enghelp" if text.is_empty() => self.line.asked = Some(Asked::Engines),
            "enghelp" if ENGINES.contains(&text) => self.line.asked = Some(Asked::Help),
            "enghelp" => wrong("an I/O engine; --enghelp lists them"),
            "version" => self.line.asked = Some(Asked::Version),
            "minimal" => self.line.output.formats = vec![OutputFormat::Terse],
            "parse-only" => self.line.parse_only = true,
            "batches" => self.line.batches = true,
            "readonly" => self.line.read_only = true,
            "append-terse" => self.append_terse = true,
            "allow-destroy" if !text.is_empty() => self.line.allow_destroy.push(text.to_owned()),
            "allow-destroy-data" if !text.is_empty() => self.line.allow_destroy_data.push(text.to_owned()),
            "allow-destroy" | "allow-destroy-data" => wrong("a device"),
            "output" if text.is_empty() => wrong("a file"),
            "output" => self.line.output.file = Some(text.to_owned()),
            "section" => self.line.sections.push(text.to_owned()),
            "seed" => match text.parse() {
                Ok(seed) => self.line.seed = Some(seed),
                Err(_) => wrong("a whole number"),
            },
            "terse-version" => match text.parse() {
                Ok(version @ 2..=5) => self.line.output.terse = version,
                _ => wrong("2, 3, 4 or 5"),
            },
            "showcmd" => self.line.show_command = true,
            "idle-prof" => match text {
                "calibrate" => self.line.output.idle = Some(IdleProfile::Calibrate),
                "system" => self.line.output.idle = Some(IdleProfile::System),
                "percpu" => self.line.output.idle = Some(IdleProfile::PerCpu),
                _ => wrong("calibrate, system or percpu"),
            },
            "status-interval" => match value::time(text, Duration::from_secs(1)) {
                Some(every) if every.is_zero() => self.line.output.status_every = None,
                Some(every) if every >= Duration::from_secs(1) => self.line.output.status_every = Some(every),
                _ => wrong("a time of at least a second"),
            },
            "eta" => match text {
                "always" | "auto" | "never" => self.line.shows_progress = text != "never",
                _ => wrong("always, auto or never"),
            },
            "output-format" => {
                let formats: Option<Vec<OutputFormat>> = text
                    .split(',')
                    .map(|word| match word {
                        "normal" => Some(OutputFormat::Normal),
                        "terse" | "minimal" => Some(OutputFormat::Terse),
                        "json" => Some(OutputFormat::Json),
                        "json+" => Some(OutputFormat::JsonPlus),
                        _ => None,
                    })
                    .collect();
                match formats {
                    Some(formats) => self.line.output.formats = formats,
                    None => wrong("normal, terse, json or json+"),
                }
            }
            _ if REFUSED.iter().any(|(name, ..)| *name == key) => {
                let cures = REFUSED.iter().filter(|(name, ..)| *name == key).map(|(.., cure)| *cure);
                let refused = Diagnostic::error(key_span, format!("--{key} is not supported"));
                self.report.push(cures.fold(refused, Diagnostic::help));
            }
            _ if WITHOUT_EFFECT.iter().any(|(name, _)| *name == key) => {
                self.line.warnings.push(Diagnostic::warning(key_span, format!("--{key} has no effect")));
            }
            _ if options::find(key).is_some() => self.of_job((key_span, key), value),
            _ => {
                let diagnostic = Diagnostic::error(key_span, format!("unknown option --{key}"));
                self.report.push(options::meant(diagnostic, key, own().map(|(name, _)| name)));
            }
        }
    }

    /// An option of the job that `--name` began, or of all jobs.
    fn of_job(&mut self, (span, key): (Span, &str), value: Option<(usize, &str)>) {
        let source = &self.line.source;
        let word = |span: Span, text: &str| Word { text: text.to_owned(), source: source.clone(), span };
        let key_word = word(span, key);
        let value = value.map(|(at, text)| word(Span::new(at, at + text.len()), text));
        if let ("name", Some(name)) = (key, &value) {
            self.line.jobs.push(Section::new(name.clone(), vec![Setting { key: key_word, value }]));
            return;
        }
        if self.line.jobs.is_empty() {
            let name = word(span, "global");
            self.line.jobs.push(Section::new(name, Vec::new()));
        }
        let job = self.line.jobs.last_mut().expect("there is one now");
        job.settings.push(Setting { key: key_word, value });
    }
}

impl CommandLine {
    /// What `--batches` says of all jobs, as they could say it themselves.
    fn batched(&self) -> Vec<Section> {
        let word = |text: &str| Word { text: text.into(), source: self.source.clone(), span: Span::default() };
        let all =
            [("iodepth_batch", "0".to_owned()), ("iodepth_batch_complete_max", options::MAXIMUM_DEPTH.to_string())]
                .map(|(key, value)| Setting { key: word(key), value: Some(word(&value)) });
        let section = Section { file: None, ..Section::new(word("global"), all.into()) };
        self.batches.then_some(section).into_iter().collect()
    }

    /// The jobs of files as fio's command lines, one for each file.
    pub fn shown(&self, files: &[Source], loader: &mut Loader<'_>) -> String {
        let mut out = String::new();
        let mut findings = Findings::new(self.source.clone());
        for file in files {
            out.push_str("fio ");
            for section in sections(file, loader, &mut findings) {
                if !section.is_global() {
                    out.push_str(&format!("--name={} ", section.name.text));
                }
                for Setting { key, value } in &section.settings {
                    let value = value.as_ref().map_or_else(String::new, |value| format!("={}", value.text));
                    out.push_str(&format!("--{}{value} ", key.text));
                }
            }
            out.push('\n');
        }
        out
    }

    /// The plan of its jobs and of those in job files, whose texts are handed in.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn plan(&self, files: &[Source], options: &mut Options<'_, '_>) -> Result<Plan, Diagnostics> {
        let first = files.first().unwrap_or(&self.source);
        let mut findings = Findings::new(first.clone());
        for warning in &self.warnings {
            findings.at(&self.source, warning.clone());
        }
        let mut all = self.batched();
        all.extend(self.jobs.iter().cloned());
        for (number, file) in files.iter().enumerate() {
            if file.text().len() > super::MAXIMUM_SIZE {
                findings.at(file, Diagnostic::whole("the job file is too large"));
                continue;
            }
            let of_file = sections(file, options.loader, &mut findings);
            all.extend(of_file.into_iter().map(|section| Section { file: Some(number), ..section }));
        }
        plan(first, &all, options, findings)
    }
}
