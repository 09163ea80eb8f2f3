//! The agent of an exact guest: reads its one job, does it, writes the result, and powers off. Everything that depends on
//! the host's time is left out: no heartbeat, no channel, no counter of the processor.

use super::exchange::EXCHANGE;
use super::handler::{Context, Handler, describe_panic};
use super::{settings::Settings, setup};
use crate::exact::{JOB, RESULT};
use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount};
use std::fs::{self, File};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The guest's own directory on the host, in words that are as long for every guest.
const OWN_DIRECTORY: &std::ffi::CStr = c"/proc/self/cwd";

pub(super) fn serve(handler: &mut dyn Handler) -> Result<(), String> {
    let mut complaints = setup::mounts();
    complaints.extend(setup::kernel_settings());
    for complaint in complaints {
        setup::print_on_console(&format!("fstone agent: {complaint}\n"));
    }
    rustix::fs::mkdir(EXCHANGE, Mode::from(0o755)).map_err(|error| format!("{EXCHANGE}: {error}"))?;
    mount("none", EXCHANGE, "hostfs", MountFlags::NOSUID, OWN_DIRECTORY)
        .map_err(|error| format!("cannot mount the guest's directory: {error}"))?;
    let exchange = Path::new(EXCHANGE);
    let job = fs::read(exchange.join(JOB)).map_err(|error| format!("cannot read the job: {error}"))?;
    let head = job.iter().position(|&byte| byte == b'\n').ok_or("the job has no kind")?;
    let kind = String::from_utf8_lossy(&job[..head]).into_owned();
    let settings = Settings { channel: String::new(), modules: None, load: Vec::new() };
    let context = Context::of_exact(&settings);
    let result = catch_unwind(AssertUnwindSafe(|| handler.run(&kind, &job[head + 1..], &context)));
    let result = match result {
        Ok(Ok(body)) => [b"done\n".as_slice(), &body].concat(),
        Ok(Err(why)) => [b"failed\n".as_slice(), why.as_bytes()].concat(),
        Err(panic) => [b"failed\n".as_slice(), describe_panic(&*panic).as_bytes()].concat(),
    };
    // Whole or not at all.
    let whole = exchange.join(RESULT);
    let new = whole.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(&result)?;
        file.sync_all()?;
        fs::rename(&new, &whole)
    };
    write().map_err(|error| format!("cannot write the result: {error}"))
}
