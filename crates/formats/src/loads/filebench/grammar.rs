//! Commands out of words.

use super::token::{Kind, Token, tokens};
use super::tree::{At, Attribute, Command, Flowop, Local, Quit, Random, Thread, Value};
use super::words::{self, Of};
use crate::diagnostic::{Diagnostic, Report, Span};

/// Reads the commands of a file. After a mistake reading goes on with the next command.
pub(super) fn commands(report: &mut Report) -> Vec<At<Command>> {
    let source = report.source().clone();
    let tokens = tokens(source.text(), report);
    let end = Span::new(source.text().len(), source.text().len());
    let mut parser = Parser { tokens: &tokens, at: 0, end, report };
    let mut commands = Vec::new();
    while parser.at < tokens.len() {
        let start = parser.at;
        match parser.command() {
            Some(command) => commands.push(command),
            None => parser.recover(start),
        }
    }
    commands
}

struct Parser<'t, 'r> {
    tokens: &'t [Token],
    at: usize,
    end: Span,
    report: &'r mut Report,
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn word(&self) -> Option<(&'t str, Span)> {
        match self.peek() {
            Some(Token { kind: Kind::Word(text), span }) => Some((text, *span)),
            _ => None,
        }
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek().is_some_and(|token| token.kind == Kind::Sign(sign))
    }

    fn sign(&mut self, sign: char) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    fn here(&self) -> Span {
        self.peek().map_or(self.end, |token| token.span)
    }

    fn unexpected(&mut self, expected: &str) {
        let found = self.peek().map_or_else(|| "the end of the file".to_owned(), Token::shown);
        self.report
            .push(Diagnostic::error(self.here(), format!("unexpected {found}")).label(format!("expected {expected}")));
    }

    fn expect(&mut self, sign: char) -> Option<()> {
        if self.sign(sign) {
            return Some(());
        }
        self.unexpected(&format!("`{sign}`"));
        None
    }

    fn recover(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match &token.kind {
                Kind::Sign('{') => depth += 1,
                Kind::Sign('}') => depth = depth.saturating_sub(1),
                Kind::Word(word) if depth == 0 && words::is_command(word) && !self.follows_equals() => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn follows_equals(&self) -> bool {
        self.at > 0 && matches!(self.tokens[self.at - 1].kind, Kind::Sign('=' | ','))
    }

    fn command(&mut self) -> Option<At<Command>> {
        let Some((name, span)) = self.word() else {
            self.unexpected("a command");
            return None;
        };
        self.at += 1;
        let command = match name {
            "set" => self.set()?,
            "define" => self.define()?,
            "eventgen" => Command::Eventgen { attributes: self.attributes(Of::Eventgen)?.0 },
            "run" => Command::Run { seconds: self.seconds() },
            "psrun" => self.psrun(),
            "quit" => Command::Quit,
            "create" => {
                // Files are made when the load is run, and nothing else is there to be created.
                self.keyword(&["files", "filesets", "fileset", "processes"])?;
                Command::Nothing
            }
            "list" => {
                self.keyword(&["fileset", "filesets", "flowop"])?;
                Command::Nothing
            }
            "echo" | "usage" => {
                self.texts();
                Command::Nothing
            }
            "debug" => {
                self.value()?;
                Command::Nothing
            }
            "version" => Command::Nothing,
            "sleep" => {
                self.value()?;
                Command::Nothing
            }
            "system" => {
                let text = match self.peek() {
                    Some(Token { kind: Kind::Quoted(text), .. }) => text.as_str(),
                    _ => "",
                };
                self.texts();
                settles(text).unwrap_or(Command::Refused {
                    why: "fstone runs no shell commands for a personality",
                    cure: "`sync` and `echo 3 > /proc/sys/vm/drop_caches` are done; put others into a study, as steps of their own",
                })
            }
            "enable" => match self.keyword(&["lathist", "multi"])? {
                "multi" => {
                    self.attributes(Of::Multi)?;
                    Command::Refused {
                        why: "fstone does not join filebench's clients on other machines",
                        cure: "run the load on each of them as a study of its own",
                    }
                }
                _ => Command::Nothing,
            },
            "domultisync" => {
                self.attributes(Of::Multi)?;
                Command::Refused {
                    why: "fstone does not join filebench's clients on other machines",
                    cure: "leave it out",
                }
            }
            "stats" => {
                // Of filebench 1.4: fstone takes and prints its figures by itself.
                self.keyword(&["clear", "snap", "directory", "command", "dump", "xmldump"])?;
                self.texts();
                Command::Nothing
            }
            _ => {
                self.at -= 1;
                self.report.push(
                    Diagnostic::error(span, format!("unknown command `{name}`"))
                        .label("no such command")
                        .did_you_mean(name, words::COMMANDS.iter().copied())
                        .note("attributes are separated by commas: one may be missing before this word"),
                );
                return None;
            }
        };
        let end =
            self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(span.end, |token| token.span.end);
        Some(At::new(command, Span::new(span.start, end.min(span.start + name.len()).max(span.end))))
    }

    fn keyword(&mut self, known: &[&'static str]) -> Option<&'static str> {
        if let Some((text, span)) = self.word() {
            if let Some(found) = known.iter().find(|word| **word == text) {
                self.at += 1;
                return Some(found);
            }
            self.report.push(
                Diagnostic::error(span, format!("unknown word `{text}`"))
                    .label(format!("expected one of {}", listed(known)))
                    .did_you_mean(text, known.iter().copied()),
            );
            return None;
        }
        self.unexpected(&format!("one of {}", listed(known)));
        None
    }

    /// Texts behind a command that change nothing.
    fn texts(&mut self) {
        while let Some(Token { kind: Kind::Quoted(_) | Kind::Variable(_), .. }) = self.peek() {
            self.at += 1;
        }
    }

    fn seconds(&mut self) -> Option<At<Value>> {
        let token = self.peek()?;
        let value = match &token.kind {
            Kind::Number(number) => Value::Number(*number),
            Kind::Variable(name) => Value::Variable(name.clone()),
            _ => return None,
        };
        self.at += 1;
        Some(At::new(value, token.span))
    }

    /// `psrun [period [seconds]]`: a run that prints figures in between.
    fn psrun(&mut self) -> Command {
        if let Some(Token { kind: Kind::Number(_) | Kind::Negative(_) | Kind::Variable(_), .. }) = self.peek() {
            self.at += 1;
        }
        Command::Run { seconds: self.seconds() }
    }

    fn set(&mut self) -> Option<Command> {
        if let Some(("mode", _)) = self.word() {
            self.at += 1;
            return self.mode();
        }
        let Some(Token { kind: Kind::Variable(name), span }) = self.peek() else {
            self.unexpected("a variable such as `$nthreads`, or `mode`");
            return None;
        };
        self.at += 1;
        self.expect('=')?;
        let value = self.expression()?;
        Some(Command::Set { name: At::new(name.clone(), *span), value })
    }

    fn mode(&mut self) -> Option<Command> {
        if self.keyword(&["quit", "noousestats", "nousestats"])? != "quit" {
            return Some(Command::Nothing);
        }
        let span = self.here();
        let quit = match self.keyword(&["timeout", "alldone", "firstdone"])? {
            "alldone" => Quit::AllDone,
            "firstdone" => Quit::FirstDone,
            _ => Quit::Timeout,
        };
        Some(Command::Mode(At::new(quit, span)))
    }

    /// A value, or two with a sign between (filebench 1.4).
    fn expression(&mut self) -> Option<At<Value>> {
        let left = self.value()?;
        let sign = match self.peek() {
            Some(Token { kind: Kind::Sign(sign @ ('*' | '/' | '+' | '-')), .. }) => *sign,
            _ => return Some(left),
        };
        self.at += 1;
        let right = self.value()?;
        let span = Span::new(left.span.start, right.span.end);
        Some(At::new(Value::Sum(Box::new(left), sign, Box::new(right)), span))
    }

    fn value(&mut self) -> Option<At<Value>> {
        let Some(token) = self.peek() else {
            self.unexpected("a value");
            return None;
        };
        let value = match &token.kind {
            Kind::Number(number) => Value::Number(*number),
            Kind::Variable(name) => Value::Variable(name.clone()),
            Kind::Quoted(text) => Value::Text(text.clone()),
            Kind::Word(word) => match word.as_str() {
                "true" => Value::Flag(true),
                "false" => Value::Flag(false),
                "randvar" | "cvar" if self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Sign('(')) => {
                    return self.random();
                }
                text => Value::Text(text.to_owned()),
            },
            Kind::Negative(_) => {
                self.report.push(Diagnostic::error(token.span, "no attribute is below 0"));
                Value::Number(0)
            }
            Kind::Sign(_) => {
                self.unexpected("a value");
                return None;
            }
        };
        self.at += 1;
        Some(At::new(value, token.span))
    }

    /// `randvar(…)` or `cvar(…)`.
    fn random(&mut self) -> Option<At<Value>> {
        let (word, span) = self.word()?;
        self.at += 1;
        self.expect('(')?;
        let random = self.random_attributes(word == "cvar")?;
        self.expect(')')?;
        let end = self.tokens[self.at - 1].span.end;
        Some(At::new(Value::Random(Box::new(random)), Span::new(span.start, end)))
    }

    fn random_attributes(&mut self, custom: bool) -> Option<Random> {
        let mut random = Random { custom, attributes: Vec::new(), table: Vec::new() };
        loop {
            if let Some(("randtable", _)) = self.word().filter(|_| !custom) {
                self.at += 1;
                self.expect('=')?;
                self.expect('{')?;
                random.table.push(self.row()?);
                while self.sign(',') {
                    random.table.push(self.row()?);
                }
                self.expect('}')?;
            } else {
                random.attributes.push(self.attribute(if custom { Of::Cvar } else { Of::Randvar })?);
            }
            if !self.sign(',') {
                return Some(random);
            }
        }
    }

    fn row(&mut self) -> Option<[At<Value>; 3]> {
        self.expect('{')?;
        let percent = self.value()?;
        self.expect(',')?;
        let smallest = self.value()?;
        self.expect(',')?;
        let largest = self.value()?;
        self.expect('}')?;
        Some([percent, smallest, largest])
    }

    /// An attribute of something. One that is not known is reported, and read over.
    fn attribute(&mut self, of: Of) -> Option<Attribute> {
        let Some((name, span)) = self.word() else {
            self.unexpected("an attribute");
            return None;
        };
        self.at += 1;
        let value = if self.sign('=') { Some(self.value()?) } else { None };
        if !of.attributes().contains(&name) {
            self.report.push(unknown_attribute(name, span, of));
        }
        Some(Attribute { name: At::new(name.to_owned(), span), value })
    }

    fn attributes(&mut self, of: Of) -> Option<(Vec<Attribute>, Vec<Local>)> {
        let (mut attributes, mut locals) = (Vec::new(), Vec::new());
        loop {
            if let Some(Token { kind: Kind::Variable(name), span }) = self.peek()
                && of.has_locals()
            {
                self.at += 1;
                let value = if self.sign('=') { Some(self.value()?) } else { None };
                locals.push(Local { name: At::new(name.clone(), *span), value });
            } else {
                let attribute = self.attribute(of)?;
                if let Some(first) =
                    attributes.iter().find(|first: &&Attribute| first.name.value == attribute.name.value)
                {
                    self.report.push(
                        Diagnostic::error(attribute.name.span, format!("`{}` again", attribute.name.value))
                            .label("filebench takes the first of them")
                            .context(first.name.span, "the first"),
                    );
                }
                attributes.push(attribute);
            }
            if !self.sign(',') {
                return Some((attributes, locals));
            }
        }
    }

    fn define(&mut self) -> Option<Command> {
        Some(match self.keyword(&["file", "fileset", "process", "flowop", "randvar", "filesets", "processes"])? {
            "file" => Command::Files { one: true, attributes: self.attributes(Of::File)?.0 },
            "fileset" | "filesets" => Command::Files { one: false, attributes: self.attributes(Of::Fileset)?.0 },
            "randvar" => self.define_randvar()?,
            "flowop" => {
                let (attributes, locals) = self.attributes(Of::Composite)?;
                Command::Flowop { attributes, locals, flowops: self.flowops()? }
            }
            _ => {
                let attributes = self.attributes(Of::Process)?.0;
                self.expect('{')?;
                let mut threads = Vec::new();
                while let Some(("thread", span)) = self.word() {
                    self.at += 1;
                    let attributes = self.attributes(Of::Thread)?.0;
                    threads.push(Thread { span, attributes, flowops: self.flowops()? });
                }
                if threads.is_empty() {
                    self.unexpected("`thread`");
                    return None;
                }
                self.expect('}')?;
                Command::Process { attributes, threads }
            }
        })
    }

    /// `define randvar name=$x, …` of filebench 1.4, which is `set $x = randvar(…)` in 1.5.
    fn define_randvar(&mut self) -> Option<Command> {
        let start = self.here();
        let mut random = self.random_attributes(false)?;
        let Some(place) = random.attributes.iter().position(|attribute| attribute.name.value == "name") else {
            self.report.push(Diagnostic::error(start, "this random variable has no name").help("name=$iosize"));
            return None;
        };
        let name = random.attributes.remove(place);
        let Some(At { value: Value::Variable(variable), span }) = name.value else {
            self.report.push(
                Diagnostic::error(name.name.span, "the name of a random variable begins with `$`").help("name=$iosize"),
            );
            return None;
        };
        let end = self.tokens[self.at - 1].span.end;
        let value = At::new(Value::Random(Box::new(random)), Span::new(start.start, end));
        Some(Command::Set { name: At::new(variable, span), value })
    }

    /// `{ flowop … flowop … }`.
    fn flowops(&mut self) -> Option<Vec<Flowop>> {
        self.expect('{')?;
        let mut flowops = Vec::new();
        while let Some(("flowop", _)) = self.word() {
            self.at += 1;
            let Some((kind, span)) = self.word() else {
                self.unexpected("the kind of a flowop, such as `openfile`");
                return None;
            };
            self.at += 1;
            let ends = self.is_sign('}') || matches!(self.word(), Some(("flowop", _)));
            let (attributes, locals) = if ends { (Vec::new(), Vec::new()) } else { self.attributes(Of::Flowop)? };
            flowops.push(Flowop { kind: At::new(kind.to_owned(), span), attributes, locals });
        }
        if flowops.is_empty() {
            self.unexpected("`flowop`");
            return None;
        }
        if !self.sign('}') {
            self.unexpected("`flowop`, `}`, or a comma and another attribute");
            return None;
        }
        Some(flowops)
    }
}

/// What a shell command does of what fstone does itself; `None` if it does anything else.
fn settles(text: &str) -> Option<Command> {
    let (mut syncs, mut drops_caches) = (false, 0);
    for one in text.split([';', '&', '\n']).map(|one| one.replace('>', " ")) {
        drops_caches = match one.split_whitespace().collect::<Vec<_>>().as_slice() {
            [] => continue,
            ["sync"] => {
                syncs = true;
                continue;
            }
            ["echo", which, "/proc/sys/vm/drop_caches"] => which,
            ["sysctl", "-w", set] | ["sysctl", set] => set.strip_prefix("vm.drop_caches=")?,
            _ => return None,
        }
        .parse()
        .ok()
        .filter(|which| (1..=3).contains(which))?;
    }
    Some(Command::Settle { syncs, drops_caches })
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn unknown_attribute(name: &str, span: Span, of: Of) -> Diagnostic {
    let diagnostic =
        Diagnostic::error(span, format!("unknown attribute `{name}`")).label(format!("{} has none", of.what()));
    match crate::diagnostic::closest(name, of.attributes().iter().copied()) {
        Some(guess) => diagnostic.help(format!("did you mean `{guess}`?")),
        None => diagnostic.note(format!("its attributes are {}", listed(of.attributes()))),
    }
}
