//! `fstone kernel`: the kernels that guests can run.

use super::Context;
use crate::{
    args::KernelAction,
    caller,
    exit::Exit,
    paths,
    terminal::{self, Bar, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::text::counted;
use fstone_model::units::format_duration;
use fstone_sandbox::kernel::{BuildProgress, Kernel, Store};
use std::time::{Duration, Instant};

pub(crate) fn kernel(context: &Context, action: &KernelAction) -> CommandResult {
    let store = Store::new(&context.kernels);
    match action {
        KernelAction::Add { what } => {
            own_directory(context)?;
            for what in what {
                terminal::tell(&format!("{what}: fetching and unpacking; nothing is installed"));
                let added = store.add(what).with_context(|| format!("failed to add the kernel {what}"));
                terminal::print(&line(&added.or_exit(Exit::CannotHere)?));
            }
        }
        KernelAction::Build { source, name, counting } => {
            terminal::print(&line(&build(context, source, name.as_deref(), *counting)?));
        }
        KernelAction::List => {
            let kernels = store.all().context("failed to list the kernels").or_exit(Exit::LabFailed)?;
            if kernels.is_empty() {
                terminal::print(&format!(
                    "No kernels in {}, and no user-mode Linux is installed.\nGet one: fstone kernel add uml:6.1\n",
                    context.kernels.display()
                ));
            }
            for kernel in &kernels {
                terminal::print(&line(kernel));
            }
        }
    }
    Ok(Exit::Success)
}

/// Builds a kernel whose time can be simulated, unless that was done before. Reports progress.
pub(super) fn build(context: &Context, source: &str, name: Option<&str>, counting: bool) -> Result<Kernel, Failure> {
    own_directory(context)?;
    let mut told = BuildLine::new();
    let built = Store::new(&context.kernels).build(source, name, counting, &mut |progress| told.tell(&progress));
    told.finish();
    built.with_context(|| format!("failed to build a kernel from {source}")).or_exit(Exit::CannotHere)
}

fn own_directory(context: &Context) -> Result<(), Failure> {
    context.check_named_kernels()?;
    caller::go_on_as(&context.kernels)?;
    paths::create_directory(&context.kernels)
        .with_context(|| format!("cannot make {}", context.kernels.display()))
        .or_exit(Exit::LabFailed)
}

/// What is said of a build: one line that changes on a terminal, a line now and then elsewhere.
struct BuildLine {
    bar: Option<Bar>,
    last: Option<Instant>,
}

impl BuildLine {
    fn new() -> Self {
        Self { bar: Bar::spinning(), last: None }
    }

    fn tell(&mut self, progress: &BuildProgress) {
        let (done, total, elapsed) = match *progress {
            BuildProgress::Preparing(what) => return self.say(what),
            BuildProgress::Unpatched(what, follows) => {
                return self.say(&format!(
                    "the patch that {what} fits Linux 6.1 and 6.12, not these sources: under this kernel {follows}"
                ));
            }
            BuildProgress::Compiling { done, total, elapsed } => (done, total, elapsed),
        };
        let pause = Duration::from_secs(if self.bar.is_some() { 1 } else { 60 });
        if self.last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        self.last = Some(Instant::now());
        let line = match total {
            Some(total) => {
                let left = elapsed.mul_f64(f64::from(total - done) / f64::from(done.max(1)));
                let left = format_duration(Duration::from_secs(left.as_secs()));
                format!("compiling: {done} of about {total} files, about {left} left")
            }
            None => format!("compiling what changed: {}", counted(done as usize, "file")),
        };
        match &self.bar {
            Some(bar) => {
                bar.say(&line);
                bar.tick();
            }
            None => terminal::tell(&line),
        }
    }

    fn say(&self, words: &str) {
        match &self.bar {
            Some(bar) => bar.above(words),
            None => terminal::tell(words),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}

/// "uml:6.1.176                  installed".
fn line(kernel: &Kernel) -> String {
    format!("{:<40} {}\n", kernel.name(), kernel.source)
}
