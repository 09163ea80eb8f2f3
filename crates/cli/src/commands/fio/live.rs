//! What `fstone fio` shows and measures while its jobs run: their results so far, at intervals and at SIGUSR1, and how idle the processors are.

use crate::progress::LiveLoad;
use fstone_engine::{CallLog, IdleMeter, Observer, Progress};
use fstone_model::LoadReport;
use signal_hook::consts::SIGUSR1;
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub(super) struct FioLoad<'a> {
    live: LiveLoad,
    idle: Option<&'a IdleMeter>,
    /// Set by SIGUSR1.
    asked: Arc<AtomicBool>,
    every: Option<Duration>,
    next: Mutex<Option<Instant>>,
    print: Box<dyn Fn(&LoadReport) + Sync + 'a>,
}

impl<'a> FioLoad<'a> {
    pub(super) fn new(
        live: LiveLoad,
        idle: Option<&'a IdleMeter>,
        every: Option<Duration>,
        print: impl Fn(&LoadReport) + Sync + 'a,
    ) -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&asked))?;
        Ok(Self { live, idle, asked, every, next: Mutex::default(), print: Box::new(print) })
    }

    pub(super) fn finish(&self) {
        self.live.finish();
    }

    fn next(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn works(&self) {
        let mut next = self.next();
        if next.is_none() {
            *next = self.every.map(|every| Instant::now() + every);
        }
        if let Some(idle) = self.idle {
            idle.begin();
        }
    }
}

impl Observer for FioLoad<'_> {
    fn measured_begin(&self) {
        self.works();
    }

    fn measured_end(&self) {
        if let Some(idle) = self.idle {
            idle.end();
        }
    }

    fn progress(&self, progress: &Progress) {
        self.live.progress(progress);
    }

    fn call_log(&self, group: &str) -> Option<Arc<dyn CallLog>> {
        self.live.call_log(group)
    }

    fn wants_reports(&self) -> bool {
        self.every.is_some()
    }

    fn wants_report(&self) -> bool {
        let mut next = self.next();
        let now = Instant::now();
        let is_due = next.is_some_and(|next| next <= now);
        if let (true, Some(every)) = (is_due, self.every) {
            *next = Some(now + every);
        }
        self.asked.swap(false, Ordering::Relaxed) || is_due
    }

    fn report_so_far(&self, report: LoadReport) {
        self.live.finish();
        (self.print)(&report);
    }
}
