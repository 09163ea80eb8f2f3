//! A workload as a workload file.
//!
//! What is as it would be without being said is left out, so that the file reads like one a person wrote.

use super::{
    action,
    lines::{KeyValues, Lines, flag, inline, quoted, real, share, size, time, unless, wanted, word},
    read::{DEFAULT_WINDOW, LEAST_RATE_EVERY, STEADY_WINDOW},
    sizes, steps,
};
use fstone_model::workload::{
    Actions, Advice, Amount, Arrivals, Batches, CpuPolicy, DEFAULT_BUILD_BLOCK_BYTES, DataPattern, Directories,
    ErrorPolicy, Existing, FailedPart, Fileset, FinalSync, FsyncPolicy, IoOverrides, IoSettings, LatencyTarget,
    LeastRate, Naming, OpenPolicy, Phase, Rate, Region, Steady, Stop, ThreadGroup, Tolerated, Workload,
};

/// A workload as a workload file; [`super::parse`] reads it back as the same workload.
///
/// That holds for workloads that a workload file can describe: names are unique, filesets are below the load's
/// directory, every phase ends. Queue depths that change nothing are left out.
pub fn print(workload: &Workload) -> String {
    let workload = &workload.clone().without_unused_depths();
    let mut out = Lines::default();
    out.key("name", quoted(&workload.name));
    out.unless_default("on-error", word(&workload.on_error), workload.on_error == ErrorPolicy::Stop);
    out.unless_default("final-sync", word(&workload.final_sync), workload.final_sync == FinalSync::Syncfs);
    if let Some(callout) = &workload.callout {
        out.key("callout", quoted(callout));
    }
    let is_default = workload.series_interval == Workload::SERIES_INTERVAL;
    out.unless_default("series-interval", time(workload.series_interval), is_default);
    out.table_unless_empty("[io]", io(&beyond_default(&workload.io)));
    out.table_unless_empty("[data]", data(&workload.data));
    for fileset in &workload.filesets {
        out.table("[[fileset]]", self::fileset(fileset));
    }
    for phase in &workload.phases {
        out.table("[[phase]]", self::phase(phase));
        for group in &phase.groups {
            out.table("[[phase.group]]", self::group(group, &workload.filesets));
            actions(&mut out, &group.actions, &workload.filesets);
        }
    }
    out.0
}

fn beyond_default(io: &IoSettings) -> IoOverrides {
    let default = IoSettings::default();
    IoOverrides {
        engine: Some(io.engine).filter(|engine| *engine != default.engine),
        direct: Some(io.direct).filter(|direct| *direct != default.direct),
        sync: Some(io.sync).filter(|sync| *sync != default.sync),
        queue_depth: Some(io.queue_depth).filter(|depth| *depth != default.queue_depth),
        polled: io.polled.then_some(true),
        uncached: io.uncached.then_some(true),
        no_wait: io.no_wait.then_some(true),
        atomic: io.atomic.then_some(true),
    }
}

fn io(io: &IoOverrides) -> KeyValues {
    wanted([
        ("engine", io.engine.as_ref().map(word)),
        ("direct", io.direct.map(|direct| direct.to_string())),
        ("sync", io.sync.as_ref().map(word)),
        ("queue-depth", io.queue_depth.map(|depth| depth.to_string())),
        ("polled", io.polled.map(|polled| polled.to_string())),
        ("uncached", io.uncached.map(|uncached| uncached.to_string())),
        ("no-wait", io.no_wait.map(|no_wait| no_wait.to_string())),
        ("atomic", io.atomic.map(|atomic| atomic.to_string())),
    ])
}

fn data(data: &DataPattern) -> KeyValues {
    wanted([
        ("compressible", unless(data.compressible == 0.0, || share(data.compressible))),
        ("duplicate", unless(data.duplicate == 0.0, || share(data.duplicate))),
        ("stamped", flag(data.stamped)),
        (
            "repeat",
            unless(data.repeat.is_empty(), || {
                quoted(&data.repeat.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }),
        ),
    ])
}

fn fileset(fileset: &Fileset) -> KeyValues {
    let naming = Naming::default();
    let amount = match fileset.amount {
        Amount::Files(files) => ("files", files.to_string()),
        Amount::Bytes(bytes) => ("bytes", size(bytes)),
        Amount::Utilization(utilization) => ("utilization", share(utilization)),
    };
    wanted([
        ("name", Some(quoted(&fileset.name))),
        ("directory", unless(fileset.directory.is_empty(), || quoted(&fileset.directory))),
        (amount.0, Some(amount.1)),
        ("directories", directories(fileset.directories)),
        ("leaf-directories", unless(fileset.leaf_directories == 0, || fileset.leaf_directories.to_string())),
        ("size", Some(sizes::print(&fileset.size))),
        (
            "file-prefix",
            unless(fileset.naming.exact || fileset.naming.file_prefix == naming.file_prefix, || {
                quoted(&fileset.naming.file_prefix)
            }),
        ),
        ("file-name", unless(!fileset.naming.exact, || quoted(&fileset.naming.file_prefix))),
        (
            "directory-prefix",
            unless(fileset.naming.directory_prefix == naming.directory_prefix, || {
                quoted(&fileset.naming.directory_prefix)
            }),
        ),
        ("leaf-prefix", fileset.naming.leaf_prefix.as_deref().map(quoted)),
        ("preallocated", unless(fileset.preallocated == 1.0, || share(fileset.preallocated))),
        (
            "build-block",
            unless(fileset.build_block_bytes == DEFAULT_BUILD_BLOCK_BYTES, || size(fileset.build_block_bytes)),
        ),
        ("existing", unless(fileset.existing == Existing::Rebuild, || word(&fileset.existing))),
        ("fill", unless(fileset.fill, || "false".into())),
        ("allocate", flag(fileset.allocate)),
        ("grows", flag(fileset.grows)),
        ("made-when-opened", flag(fileset.made_when_opened)),
        ("ranks", unless(fileset.ranks.is_private(), || word(&fileset.ranks))),
    ])
}

fn directories(directories: Directories) -> Option<String> {
    match directories {
        Directories::Flat { count: 0, root_too: false } => None,
        Directories::Flat { count, root_too: false } => Some(count.to_string()),
        Directories::Flat { count, root_too: true } => Some(format!("{{ count = {count}, parent-too = true }}")),
        Directories::Filled { width, depth, each, leaves_only } => {
            let leaves = if leaves_only { ", leaves-only = true" } else { "" };
            Some(format!("{{ tree = {{ width = {width}, depth = {depth}, each = {each}{leaves} }} }}"))
        }
        Directories::Tree { width, depth } => Some(format!("{{ tree = {{ width = {width}, depth = {depth} }} }}")),
    }
}

fn phase(phase: &Phase) -> KeyValues {
    wanted([
        ("name", Some(quoted(&phase.name))),
        ("measured", unless(phase.measured, || "false".into())),
        ("rank-shift", unless(phase.rank_shift == 0, || phase.rank_shift.to_string())),
        ("node-shift", unless(phase.node_shift == 0, || phase.node_shift.to_string())),
        ("sync-first", flag(phase.syncs)),
        ("drop-caches", unless(phase.drops_caches == 0, || phase.drops_caches.to_string())),
        ("stop", stop(&phase.stop)),
    ])
}

fn stop(stop: &Stop) -> Option<String> {
    let keys = wanted([
        ("time", stop.time.map(time)),
        ("operations", stop.operations.map(|operations| operations.to_string())),
        ("bytes", stop.bytes.map(size)),
        ("once-through", flag(stop.once_through)),
        ("first-done", flag(stop.first_done)),
        ("wear-out", flag(stop.wear_out)),
        ("full", flag(stop.full)),
        ("utilization", stop.utilization.map(share)),
    ]);
    unless(keys.is_empty(), || inline(&keys))
}

fn group(group: &ThreadGroup, filesets: &[Fileset]) -> KeyValues {
    let ratio = match &group.actions {
        Actions::Ratio { first, second, ratio } => Some(format!(
            "{{ value = {}, first = {}, second = {} }}",
            real(*ratio),
            inline(&action::print(first, filesets)),
            inline(&action::print(second, filesets))
        )),
        Actions::Mix(_) | Actions::Sequence(_) | Actions::Program(_) => None,
    };
    let operations = |rate| if let Some(Rate::Operations(rate)) = rate { Some(real(rate)) } else { None };
    let bytes = |rate| if let Some(Rate::Bytes(rate)) = rate { Some(size(rate)) } else { None };
    let usual_pause = if group.think_after.is_some() { u64::MAX } else { 1 };
    wanted([
        ("name", Some(quoted(&group.name))),
        ("threads", unless(group.threads == 1, || group.threads.to_string())),
        ("io", unless(group.io.is_empty(), || inline(&io(&group.io)))),
        ("open", unless(group.open == OpenPolicy::PerOperation, || word(&group.open))),
        ("think-time", unless(group.think_time.is_zero(), || time(group.think_time))),
        ("think-every", unless(group.think_every == usual_pause, || group.think_every.to_string())),
        ("think-after", group.think_after.map(time)),
        ("think-spin", unless(group.think_spin.is_zero(), || time(group.think_spin))),
        ("rate", group.rate_per_second.map(real)),
        ("bandwidth", group.bytes_per_second.map(size)),
        ("read-rate", operations(group.direction_rates[0])),
        ("read-bandwidth", bytes(group.direction_rates[0])),
        ("write-rate", operations(group.direction_rates[1])),
        ("write-bandwidth", bytes(group.direction_rates[1])),
        ("arrivals", unless(group.arrivals == Arrivals::Even, || word(&group.arrivals))),
        ("invalidate", flag(group.invalidate)),
        ("invalidate-every", group.invalidate_every.map(size)),
        ("advice", unless(group.advice == Advice::None, || word(&group.advice))),
        ("region", region(group.region)),
        ("start-delay", unless(group.start_delay.is_zero(), || time(group.start_delay))),
        ("cpus", unless(group.cpus.is_empty(), || format!("{:?}", group.cpus))),
        ("cpu-policy", unless(group.cpu_policy == CpuPolicy::Shared, || word(&group.cpu_policy))),
        ("fsync", fsync(&group.fsync)),
        ("stop", stop(&group.stop)),
        ("own-series", flag(group.own_series)),
        ("batches", batches(group.batches)),
        ("latency-target", group.latency_target.map(latency_target)),
        ("continues", flag(group.continues)),
        ("tour", group.tour.as_ref().map(word)),
        ("process", group.process.as_deref().map(quoted)),
        ("tour-operations", unless(group.tour_operations == 1, || group.tour_operations.to_string())),
        ("tour-open", group.tour_open.map(|files| files.to_string())),
        ("backlog", group.backlog.map(|operations| operations.to_string())),
        ("least-rate", group.least_rate.map(least_rate)),
        ("steady", group.steady.map(steady)),
        ("goes-on-after", goes_on_after(&group.goes_on_after)),
        ("ratio", ratio),
    ])
}

fn batches(batches: Batches) -> Option<String> {
    let keys = wanted([
        ("submit", batches.submit.map(|submit| submit.to_string())),
        ("least", unless(batches.least == 1, || batches.least.to_string())),
        ("refill-at", batches.refill_at.map(|low| low.to_string())),
        ("most", batches.most.map(|most| most.to_string())),
    ]);
    unless(keys.is_empty(), || inline(&keys))
}

fn least_rate(least: LeastRate) -> String {
    inline(&wanted([
        ("bandwidth", unless(least.bytes == 0, || size(least.bytes))),
        ("rate", unless(least.operations == 0, || least.operations.to_string())),
        ("write-bandwidth", least.of_writes.map(|(bytes, _)| size(bytes))),
        (
            "write-rate",
            least.of_writes.filter(|(_, operations)| *operations > 0).map(|(_, operations)| operations.to_string()),
        ),
        ("every", unless(least.every == LEAST_RATE_EVERY, || time(least.every))),
    ]))
}

fn goes_on_after(errors: &[Tolerated]) -> Option<String> {
    let of = |part: FailedPart| {
        let numbers: Vec<i32> = errors.iter().filter(|of| of.part == part).map(|of| of.errno).collect();
        unless(numbers.is_empty(), || format!("{numbers:?}"))
    };
    let checks = errors.iter().any(|of| of.part == FailedPart::Verify);
    let keys = wanted([("read", of(FailedPart::Read)), ("write", of(FailedPart::Write)), ("verify", flag(checks))]);
    unless(keys.is_empty(), || inline(&keys))
}

fn steady(steady: Steady) -> String {
    inline(&wanted([
        ("bytes", flag(steady.bytes)),
        ("slope", flag(steady.slope)),
        if steady.relative { ("share", Some(share(steady.limit))) } else { ("below", Some(real(steady.limit))) },
        ("window", unless(steady.window == STEADY_WINDOW, || time(steady.window))),
        ("ramp", unless(steady.ramp.is_zero(), || time(steady.ramp))),
    ]))
}

fn latency_target(target: LatencyTarget) -> String {
    inline(&wanted([
        ("latency", Some(time(target.latency))),
        ("share", unless(target.share >= 1.0, || share(target.share))),
        ("window", unless(target.window == DEFAULT_WINDOW, || time(target.window))),
        ("follow", flag(target.follow)),
    ]))
}

fn region(region: Region) -> Option<String> {
    match region {
        // What a rank makes of a region is in no file.
        Region::Whole | Region::OfRank { .. } => None,
        Region::Split => Some("\"split\"".into()),
        Region::At { offset_bytes, length_bytes, step_bytes } => Some(inline(&wanted([
            ("offset", unless(offset_bytes == 0, || size(offset_bytes))),
            ("length", length_bytes.map(size)),
            ("step", unless(step_bytes == 0, || size(step_bytes))),
        ]))),
    }
}

fn fsync(policy: &FsyncPolicy) -> Option<String> {
    let keys = wanted([
        ("every", unless(policy.every_operations == 0, || policy.every_operations.to_string())),
        ("all-files", flag(policy.all_files)),
        ("between", flag(policy.between)),
        ("after-last", flag(policy.after_last)),
        ("counted", flag(policy.counted)),
        ("at-end", flag(policy.at_end)),
        ("at-close", flag(policy.at_close)),
        ("data-only", flag(policy.data_only)),
        ("counts-writes", flag(policy.counts_writes)),
        ("data-every", unless(policy.data_every == 0, || policy.data_every.to_string())),
        ("range-flags", unless(policy.range_flags == 0, || policy.range_flags.to_string())),
    ]);
    unless(keys.is_empty(), || inline(&keys))
}

fn actions(out: &mut Lines, actions: &Actions, filesets: &[Fileset]) {
    match actions {
        Actions::Mix(mix) => {
            for weighted in mix {
                let mut keys = wanted([("weight", unless(weighted.weight == 1, || weighted.weight.to_string()))]);
                keys.extend(action::print(&weighted.action, filesets));
                out.table("[[phase.group.mix]]", keys);
            }
        }
        Actions::Sequence(sequence) => {
            for one in sequence {
                out.table("[[phase.group.sequence]]", action::print(one, filesets));
            }
        }
        Actions::Program(steps) => {
            for one in steps {
                out.table("[[phase.group.program]]", steps::print(one, filesets));
            }
        }
        // On the group's own lines.
        Actions::Ratio { .. } => {}
    }
}
