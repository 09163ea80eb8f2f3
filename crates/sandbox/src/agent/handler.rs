//! Who does an agent's jobs, and what it can ask for meanwhile.

use super::channel::Line;
use super::modules::{LoadError, Modules};
use super::settings::Settings;
use super::{exchange, setup};
use crate::frames::{FrameWriter, Message};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs jobs inside the guest.
pub trait Handler {
    /// Does the job, or says why it cannot. A panic counts as the latter; it does not cost the guest its life.
    fn run(&mut self, kind: &str, body: &[u8], context: &Context<'_>) -> Result<Vec<u8>, String>;
}

/// What a handler can ask for while it runs a job.
#[derive(Debug)]
pub struct Context<'a> {
    /// Where the host listens; it does not to an exact guest.
    pub(super) writer: Option<&'a Writer>,
    pub(super) settings: &'a Settings,
    pub(super) job: u32,
    asked: AtomicU64,
}

impl<'a> Context<'a> {
    pub(super) const fn new(writer: &'a Writer, settings: &'a Settings, job: u32) -> Self {
        Self { writer: Some(writer), settings, job, asked: AtomicU64::new(0) }
    }

    pub(super) const fn of_exact(settings: &'a Settings) -> Self {
        Self { writer: None, settings, job: 0, asked: AtomicU64::new(0) }
    }

    /// In an exact guest, asks whoever attends it ([`crate::exact::Attendant`]) something in the middle of the job.
    ///
    /// # Errors
    /// In words, when there is nobody to answer.
    pub fn ask(&self, question: &[u8]) -> Result<Vec<u8>, String> {
        if self.writer.is_some() {
            return Err("only a guest in virtual time can ask its host".to_owned());
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        exchange::ask(number, question).map_err(|error| format!("the host does not answer: {error}"))
    }

    pub fn progress(&self, text: impl Into<String>) {
        if let Some(writer) = self.writer {
            send(writer, &Message::Progress { id: self.job, text: bounded(text.into()) });
        }
    }

    /// Puts lines into the trial's log; the beginning of each, should they be endless.
    pub fn log(&self, text: &str) {
        let Some(writer) = self.writer else { return };
        for line in text.lines() {
            send(writer, &Message::Log { text: bounded(line.to_owned()) });
        }
    }

    /// Loads a module with everything it needs, unless it is in the kernel already.
    pub fn load_module(&self, name: &str) -> Result<(), LoadError> {
        Modules::open(self.settings.modules.as_deref())?.load(name)
    }

    /// A directory in memory where mount points can be made.
    pub const fn scratch(&self) -> &'static str {
        setup::SCRATCH
    }
}

pub(super) type Writer = Mutex<FrameWriter<Line>>;

pub(super) fn send(writer: &Writer, message: &Message) {
    // Nobody to tell when the host is gone: the reader notices and powers off.
    let _ = writer.lock().unwrap_or_else(PoisonError::into_inner).send(message);
}

/// Short enough for a message's head, whatever a handler had to say.
pub(super) fn bounded(mut text: String) -> String {
    const LIMIT: usize = 4 << 10;
    if text.len() > LIMIT {
        let end = (0..=LIMIT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

pub(super) fn describe_panic(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a word"))
}
