//! The words of a command line that means given options: what is recorded of a run that was not typed as such.

use super::{Blocks, ExecutorChoice, Global, Missing, RunArguments};
use clap::ValueEnum;
use fstone_model::units::{self, format_bytes};
use fstone_sandbox::vhost::Speed;
use std::{path::Path, time::Duration};

struct Words(Vec<String>);

impl Words {
    fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.0.push(format!("--{name}"));
        }
    }

    fn option(&mut self, name: &str, value: Option<String>) {
        match value {
            // Apart it would be an option.
            Some(value) if value.starts_with('-') => self.0.push(format!("--{name}={value}")),
            Some(value) => self.0.extend([format!("--{name}"), value]),
            None => {}
        }
    }
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Global {
    pub(crate) fn words(&self) -> Vec<String> {
        let Self { store, work_directory, kernels, color: _ } = self;
        let mut words = Words(Vec::new());
        words.option("store", store.as_deref().map(path));
        words.option("work-directory", work_directory.as_deref().map(path));
        words.option("kernels", kernels.as_deref().map(path));
        words.0
    }
}

impl RunArguments {
    /// What follows a `--` is for sbatch, or it is the study, whose name may begin with a dash there.
    pub(crate) fn told_apart(&self) -> Result<Self, String> {
        let mut arguments = self.clone();
        match (self.slurm, &self.study, &self.sbatch[..]) {
            (_, _, []) | (true, Some(_), _) => {}
            (_, None, [study]) if !self.all => {
                arguments.study = Some(study.clone());
                arguments.sbatch.clear();
            }
            (_, _, words) => {
                let words = words.join(" ");
                return Err(format!("{words:?} after -- is for sbatch, which needs a study and --slurm before it"));
            }
        }
        Ok(arguments)
    }

    /// The words after `fstone` of a run with these options.
    pub(crate) fn words(&self) -> Vec<String> {
        // Every one by its name: one that is new is not forgotten here.
        let Self {
            study,
            all,
            quick,
            dry_run,
            duration,
            repeats,
            budget,
            resolution,
            device_size,
            device,
            allow_destroy,
            allow_destroy_data,
            executor,
            missing,
            kernel,
            exact,
            model,
            charge,
            cpu,
            perturbed,
            jobs,
            guest_memory,
            guest_disk,
            only,
            seed,
            source,
            blocks,
            slurm,
            slurm_directory,
            sbatch,
            set,
            resume,
            changed_machine,
            wait,
            keep_going,
            live,
            published,
            note,
            output,
        } = self;
        let mut words = Words(vec!["run".to_owned()]);
        words.option("executor", (*executor != ExecutorChoice::default()).then(|| word(executor)));
        for (factor, level) in only {
            words.option("only", Some(format!("{factor}={level}")));
        }
        words.flag("all", *all);
        words.flag("quick", *quick);
        words.flag("dry-run", *dry_run);
        words.option("duration", duration.map(time));
        words.option("repeats", repeats.map(range));
        words.option("budget", budget.map(time));
        words.option("resolution", resolution.map(|share| share.to_string()));
        words.option("device-size", device_size.map(size));
        words.option("device", device.clone());
        for device in allow_destroy {
            words.option("allow-destroy", Some(path(device)));
        }
        for device in allow_destroy_data {
            words.option("allow-destroy-data", Some(path(device)));
        }
        words.option("missing", (*missing != Missing::default()).then(|| word(missing)));
        for kernel in kernel {
            words.option("kernel", Some(kernel.written()));
        }
        words.flag("exact", *exact);
        words.option("model", model.clone());
        words.option("charge", charge.map(time));
        words.option("cpu", cpu.clone());
        words.option("perturbed", perturbed.map(|number| number.to_string()));
        words.option("jobs", jobs.map(|jobs| jobs.to_string()));
        words.option("guest-memory", guest_memory.map(size));
        words.option("guest-disk", guest_disk.map(speed));
        words.option("seed", seed.map(|seed| seed.to_string()));
        words.option("source", source.as_deref().map(path));
        words.option("blocks", blocks.as_ref().map(numbers));
        for (name, value) in set {
            words.option("set", Some(format!("{name}={value}")));
        }
        words.flag("resume", *resume);
        words.flag("changed-machine", *changed_machine);
        words.flag("wait", *wait);
        words.flag("keep-going", *keep_going);
        words.flag("live", *live);
        words.flag("published", *published);
        words.option("note", note.as_ref().map(|note| note.as_str().to_owned()));
        words.option("output", output.as_deref().map(path));
        words.flag("slurm", *slurm);
        words.option("slurm-directory", slurm_directory.as_deref().map(path));
        if let Some(study) = study {
            if study.starts_with('-') {
                words.0.push("--".to_owned());
            }
            words.0.push(study.clone());
        }
        if !sbatch.is_empty() {
            words.0.push("--".to_owned());
            words.0.extend(sbatch.iter().cloned());
        }
        words.0
    }
}

fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// In the largest unit that gives a whole number.
fn time(time: Duration) -> String {
    let nanoseconds = time.as_nanos();
    let (unit, size) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, size)| nanoseconds.is_multiple_of(*size))
        .unwrap_or(("us", 1_000));
    match nanoseconds % size {
        0 => format!("{}{unit}", nanoseconds / size),
        rest => format!("{}.{rest:03}{unit}", nanoseconds / size),
    }
}

/// As people write it, where that is exact.
fn size(bytes: u64) -> String {
    let written = format_bytes(bytes).replace(' ', "");
    if units::parse_bytes(&written) == Ok(bytes) { written } else { format!("{bytes}B") }
}

fn range((least, most): (u32, u32)) -> String {
    if least == most { least.to_string() } else { format!("{least}..{most}") }
}

fn speed(speed: Speed) -> String {
    // No option says how long a flush takes.
    let Speed { latency, flush_latency: _, iops, bytes_per_second } = speed;
    let parts = [
        iops.map(|iops| format!("iops={iops}")),
        bytes_per_second.map(|bytes| format!("bandwidth={}", size(bytes))),
        latency.map(|latency| format!("latency={}", time(latency))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}

fn numbers(Blocks(blocks): &Blocks) -> String {
    blocks.iter().map(|block| (block + 1).to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use crate::args::{Arguments, Command, RunArguments};
    use clap::Parser;

    fn read(words: &[String]) -> RunArguments {
        let words = std::iter::once("fstone".to_owned()).chain(words.iter().cloned());
        match Arguments::try_parse_from(words).expect("a command line").command {
            Command::Run(arguments) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_mean_the_options_that_they_are_made_of() {
        for line in [
            "small-file",
            "--all --quick --keep-going --wait --live --published",
            "--duration 300ms --repeats 3..7 --device-size 64MiB --device memory --seed 7 -- -x.toml",
            "./run --budget 1.5s --resolution 0.03 --missing uml --jobs 3 --source a/b.tar --output pages",
            "x.toml --kernel uml:6.1 --kernel qemu:/a/b --guest-memory 300001KiB --guest-disk iops=5,bandwidth=7B,latency=1ms",
            "x.toml --exact --model m.toml --charge 1.25us --set threads=2 --set a=-b --note=-before --dry-run",
            "x.toml --charge 0s --cpu server-today --exact --only filesystem=ext4* --only threads=4 --device directory:/a",
            "x.toml --executor uml --device /dev/sdx --allow-destroy /dev/sdx --device-size 4100KiB --blocks 1,3-4",
            "x.toml --resume --changed-machine",
            "x.toml --repeats 4 --slurm --slurm-directory /a -- --partition=fast -n1",
        ] {
            let typed: Vec<String> = ["run"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
            let arguments = read(&typed);
            let again = read(&arguments.words());
            assert_eq!(format!("{again:?}"), format!("{arguments:?}"), "{line}: {:?}", arguments.words());
        }
    }
}
