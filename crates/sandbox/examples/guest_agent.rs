//! Host and guest in one binary: boots itself as the agent of a guest and has it do something.
//!
//! `guest_agent boot [N]` boots N guests one after the other and prints how long each took to say hello.

use fstone_sandbox::agent::{self, Context, Handler};
use fstone_sandbox::guest::JobEnd;
use fstone_sandbox::uml::{UmlSpec, installed_kernel};
use std::error::Error;
use std::time::{Duration, Instant};

struct Example;

impl Handler for Example {
    fn run(&mut self, kind: &str, body: &[u8], context: &Context<'_>) -> Result<Vec<u8>, String> {
        match kind {
            "echo" => Ok(body.to_vec()),
            "progress" => {
                context.progress("half way");
                context.log("a line for the log");
                Ok(Vec::new())
            }
            other => Err(format!("no such job: {other}")),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    if agent::is_agent() {
        agent::main(&mut Example);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["boot"] => boot(1),
        ["boot", count] => boot(count.parse()?),
        _ => Err("usage: guest_agent boot [N]".into()),
    }
}

fn boot(count: u32) -> Result<(), Box<dyn Error>> {
    let kernel = installed_kernel().ok_or("linux.uml is not installed: apt-get install user-mode-linux")?;
    let directory = tempfile::tempdir()?;
    for _ in 0..count {
        let spec = UmlSpec::new(kernel.clone(), std::env::current_exe()?, directory.path());
        let start = Instant::now();
        let mut guest = spec.boot()?;
        let round_trip = Instant::now();
        let JobEnd::Done(_) = guest.run("echo", vec![7; 1000], Duration::from_secs(10), &mut |_| ()) else {
            return Err("the guest did not echo".into());
        };
        let round_trip = round_trip.elapsed();
        let (hello, boot_time, confinement) = (guest.hello().clone(), guest.boot_time(), guest.confinement());
        let report = guest.finish();
        println!(
            "{} hello after {boot_time:.0?} (kernel {} ms), round trip {round_trip:.0?}, all {:.0?}, {:?}, {:?}, {:?} {:?}",
            hello.kernel_release,
            hello.booted_ns / 1_000_000,
            start.elapsed(),
            confinement,
            report.ending,
            hello.tsc,
            hello.complaints
        );
    }
    Ok(())
}
