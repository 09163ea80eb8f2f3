//! What may stand on fio's command line: its own options, job files, and jobs that are written there.

use super::{
    COMMAND_LINE, Findings, Options, Plan, options, plan,
    text::{Section, Setting, Word, sections},
};
use crate::{
    Diagnostics, Source, Span,
    diagnostic::{Diagnostic, Report},
    loads::Loader,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Help,
    Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Normal,
    Terse,
    Json,
    JsonPlus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub formats: Vec<OutputFormat>,
    /// A file; standard output without one.
    pub file: Option<String>,
    /// The version of the terse format, 2 to 5.
    pub terse: u8,
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
    (
        "idle-prof",
        true,
        "leave it out: usr_cpu and sys_cpu are the jobs' own, and `mpstat -P ALL` shows how idle the machine is",
    ),
    (
        "status-interval",
        true,
        "leave it out: standard error has live figures, and write_bw_log and its like have them over time",
    ),
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
            output: Output { formats: vec![OutputFormat::Normal], file: None, terse: 3 },
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
        let key = (key_at, key);
        // A value may also be the next word.
        let value = value.or_else(|| if reader.takes_value(key.1) { rest.next() } else { None });
        reader.option(at, key, value);
    }
    if reader.append_terse && !reader.line.output.formats.contains(&OutputFormat::Terse) {
        reader.line.output.formats.insert(0, OutputFormat::Terse);
    }
    reader.report.finish(reader.line).map(|(line, _)| line)
}

struct Reader {
    report: Report,
    line: CommandLine,
    append_terse: bool,
}

impl Reader {
    fn takes_value(&self, key: &str) -> bool {
        let refused = REFUSED.iter().map(|(name, value, _)| (*name, *value));
        let own = WITHOUT_EFFECT.iter().copied().chain(refused).find(|(name, _)| *name == key);
        match key {
            "help" | "version" | "minimal" | "parse-only" | "batches" | "readonly" | "append-terse" | "showcmd" => {
                false
            }
            "eta" | "output" | "output-format" | "section" | "terse-version" | "seed" | "allow-destroy"
            | "allow-destroy-data" => true,
            _ => match own {
                Some((_, value)) => value,
                None => options::find(key).is_some_and(|option| !option.is_switch),
            },
        }
    }

    fn option(&mut self, start: usize, (at, key): (usize, &str), value: Option<(usize, &str)>) {
        let key_span = Span::new(start, at + key.len());
        let text = value.map_or("", |(_, value)| value);
        let place = value.map_or(key_span, |(at, value)| Span::new(at, at + value.len()));
        let mut wrong = |expected: &str| {
            self.report.push(
                Diagnostic::error(place, format!("not a value for --{key}")).label(format!("expected {expected}")),
            );
        };
        match key {
            "help" => self.line.asked = Some(Asked::Help),
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
            _ if options::find(key).is_some() => self.of_job((at, key), value),
            _ => {
                const OWN: [&str; 15] = [
                    "eta",
                    "allow-destroy",
                    "allow-destroy-data",
                    "append-terse",
                    "readonly",
                    "batches",
                    "output",
                    "output-format",
                    "section",
                    "minimal",
                    "parse-only",
                    "help",
                    "version",
                    "terse-version",
                    "seed",
                ];
                let diagnostic = Diagnostic::error(key_span, format!("unknown option --{key}"));
                self.report.push(options::meant(diagnostic, key, OWN));
            }
        }
    }

    /// An option of the job that `--name` began, or of all jobs.
    fn of_job(&mut self, (at, key): (usize, &str), value: Option<(usize, &str)>) {
        let source = &self.line.source;
        let word = |at: usize, text: &str| Word {
            text: text.to_owned(),
            source: source.clone(),
            span: Span::new(at, at + text.len()),
        };
        let key_word = word(at, key);
        let value = value.map(|(at, text)| word(at, text));
        if let ("name", Some(name)) = (key, &value) {
            self.line.jobs.push(Section::new(name.clone(), vec![Setting { key: key_word, value }]));
            return;
        }
        if self.line.jobs.is_empty() {
            let name = word(at, "global");
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
