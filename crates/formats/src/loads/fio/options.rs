//! Every option of fio's that a file job can have, and what becomes of it.

use crate::diagnostic::{Diagnostic, closest};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    Taken,
    /// It changes nothing that is measured here, for this reason.
    Ignored(&'static str),
    /// A load that has it would not be what was asked for, for this reason.
    Refused(&'static str),
}

#[derive(Debug)]
pub(super) struct Opt {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) treatment: Treatment,
}

pub(super) fn find(name: &str) -> Option<&'static Opt> {
    // Dashes and underscores are the same to fio's command line.
    let same = |known: &str| known == name || (known.len() == name.len() && known == name.replace('-', "_"));
    OPTIONS.iter().find(|option| same(option.name) || option.aliases.iter().any(|alias| same(alias)))
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied()))
}

/// An error about an option that nobody knows, with what was probably meant: an option, or one of these words.
pub(super) fn meant(error: Diagnostic, name: &str, others: impl IntoIterator<Item = &'static str>) -> Diagnostic {
    match closest(name, others.into_iter().chain(names())) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => error.help("leave it out; `fstone fio --help` lists all options"),
    }
}

const fn taken(name: &'static str, aliases: &'static [&'static str]) -> Opt {
    Opt { name, aliases, treatment: Treatment::Taken }
}

const fn ignored(name: &'static str, aliases: &'static [&'static str], why: &'static str) -> Opt {
    Opt { name, aliases, treatment: Treatment::Ignored(why) }
}

const fn refused(name: &'static str, aliases: &'static [&'static str], why: &'static str) -> Opt {
    Opt { name, aliases, treatment: Treatment::Refused(why) }
}

const TIMES: &str = "latencies are always measured; docs/performance.md says what that costs";
const MEMORY: &str = "buffers are the engine's own";
const LAYOUT: &str = "files are made before the first phase, one fileset after the other";
const LOGS: &str = "it belongs to fio's own log files";
const OPERATOR: &str = "it concerns how fio's processes run";
const RANDOM: &str = "random streams follow from one seed (--seed)";
const ZONED: &str = "it concerns zoned block devices, and loads work on files";
const REPLAY: &str = "I/O is neither recorded nor replayed";
const SHELL: &str = "job files cannot run commands";
const TRIM: &str = "files are not trimmed";
const FLOW: &str =
    "the speed of one job would depend on another's, and neither figure would be its own; give each a rate instead";
const PRIORITY: &str = "I/O priorities are not set";
const STEADY: &str = "the measurement would decide when the run ends; use time_based and runtime";
const NUMA: &str = "memory is not bound to NUMA nodes";
const VERIFYING: &str =
    "all data is stamped and every stamp is checked; the first damage is reported with file and offset";
const NETWORK: &str =
    "it belongs to an I/O engine for hardware, a network or a library, and loads work on a mounted filesystem";

pub(super) const OPTIONS: &[Opt] = &[
    taken("kb_base", &[]),
    ignored("unit_base", &[], "it changes how rates are printed"),
    ignored("description", &[], "it is a comment"),
    taken("name", &[]),
    taken("loops", &[]),
    taken("numjobs", &[]),
    taken("runtime", &["timeout"]),
    taken("time_based", &[]),
    taken("startdelay", &[]),
    taken("ramp_time", &[]),
    ignored("clocksource", &[], "docs/method.md says which clock is used"),
    ignored("gtod_reduce", &[], TIMES),
    ignored("gtod_cpu", &[], TIMES),
    ignored("job_max_open_zones", &[], ZONED),
    taken("directory", &[]),
    taken("filename", &[]),
    taken("filename_format", &[]),
    ignored("unique_filename", &[], "it concerns fio's clients and servers"),
    refused("opendir", &[], "a load works only on files that it names"),
    ignored("lockfile", &[], "the engine itself locks a file that an operation needs exclusively"),
    taken("nrfiles", &["nr_files"]),
    ignored("openfiles", &[], "files stay open all the time"),
    taken("file_service_type", &[]),
    ignored("ioscheduler", &[], "the device's scheduler is left as it is"),
    ignored("create_serialize", &[], LAYOUT),
    ignored("create_fsync", &[], "files are made durable before the first phase"),
    ignored("create_on_open", &[], LAYOUT),
    taken("create_only", &[]),
    taken("allow_file_create", &[]),
    ignored("allow_mounted_write", &[], "block devices are not written"),
    taken("pre_read", &[]),
    taken("unlink", &[]),
    refused("unlink_each_loop", &[], "files stay until the load ends"),
    refused("zonemode", &[], ZONED),
    refused("zonerange", &[], ZONED),
    refused("zonesize", &[], ZONED),
    refused("zonecapacity", &[], ZONED),
    refused("zoneskip", &[], ZONED),
    refused("read_beyond_wp", &[], ZONED),
    refused("max_open_zones", &[], ZONED),
    refused("ignore_zone_limits", &[], ZONED),
    refused("zone_reset_threshold", &[], ZONED),
    refused("zone_reset_frequency", &[], ZONED),
    taken("direct", &[]),
    taken("atomic", &[]),
    taken("buffered", &[]),
    taken("readwrite", &["rw"]),
    taken("rw_sequencer", &[]),
    ignored("unified_rw_reporting", &[], "reads and writes are reported separately, as by default"),
    ignored("randrepeat", &[], RANDOM),
    ignored("allrandrepeat", &[], RANDOM),
    ignored("randseed", &[], RANDOM),
    taken("fallocate", &[]),
    taken("fadvise_hint", &[]),
    refused("write_hint", &[], "the engine gives the kernel no hints"),
    taken("offset", &[]),
    taken("offset_align", &[]),
    taken("offset_increment", &[]),
    taken("number_ios", &[]),
    taken("fsync", &[]),
    taken("fdatasync", &[]),
    refused("write_barrier", &[], "there is no such system call"),
    refused("sync_file_range", &[], "the engine does not call it"),
    taken("overwrite", &[]),
    taken("end_fsync", &[]),
    taken("fsync_on_close", &[]),
    taken("rwmixread", &[]),
    taken("rwmixwrite", &[]),
    taken("random_distribution", &[]),
    taken("percentage_random", &[]),
    taken("norandommap", &[]),
    ignored("softrandommap", &[], "the order of blocks needs no map"),
    ignored("random_generator", &[], "docs/method.md says which generator is used"),
    taken("blocksize", &["bs"]),
    taken("blocksize_range", &["bsrange"]),
    taken("bssplit", &[]),
    refused("blocksize_unaligned", &["bs_unaligned"], "blocks have exactly the given sizes"),
    refused("bs_is_seq_rand", &[], "set the block sizes of reads and writes instead"),
    taken("blockalign", &["ba"]),
    taken("zero_buffers", &[]),
    ignored("refill_buffers", &[], "each written block has its own data"),
    ignored("scramble_buffers", &[], "each written block has its own data"),
    taken("buffer_compress_percentage", &[]),
    ignored("buffer_compress_chunk", &[], "the share applies to every 4 KiB"),
    taken("buffer_pattern", &[]),
    taken("dedupe_percentage", &[]),
    refused("dedupe_mode", &[], "a duplicate repeats an earlier block"),
    refused("dedupe_working_set_percentage", &[], "a duplicate repeats an earlier block"),
    refused("dedupe_global", &[], "a duplicate repeats an earlier block"),
    taken("invalidate", &[]),
    taken("sync", &[]),
    ignored("iomem", &["mem"], MEMORY),
    ignored("iomem_align", &["mem_align"], MEMORY),
    ignored("hugepage-size", &[], MEMORY),
    ignored("lockmem", &[], MEMORY),
    taken("size", &[]),
    taken("io_size", &["io_limit"]),
    taken("filesize", &[]),
    refused("file_append", &[], "a job starts at its offset"),
    refused(
        "fill_device",
        &["fill_fs"],
        "a load ends by size or time; a workload file's `utilization` fills a filesystem to a share",
    ),
    taken("ioengine", &[]),
    taken("iodepth", &[]),
    taken("iodepth_batch_submit", &["iodepth_batch"]),
    taken("iodepth_batch_complete_min", &["iodepth_batch_complete"]),
    ignored("iodepth_batch_complete_max", &[], "all completed requests are collected"),
    taken("iodepth_low", &[]),
    ignored("serialize_overlap", &[], "blocks of a random map do not overlap"),
    ignored(
        "io_submit_mode",
        &[],
        "requests are submitted by the thread that makes them, and latency counts from the intended start",
    ),
    taken("thinktime", &[]),
    refused("thinktime_spin", &[], "threads sleep between operations"),
    taken("thinktime_blocks", &[]),
    taken("thinktime_blocks_type", &[]),
    refused("thinktime_iotime", &[], "pauses come after a number of operations"),
    taken("rate", &[]),
    ignored("rate_min", &["ratemin"], "a job that falls behind continues, and the achieved rate is reported"),
    taken("rate_iops", &[]),
    ignored("rate_iops_min", &[], "a job that falls behind continues, and the achieved rate is reported"),
    taken("rate_process", &[]),
    ignored("rate_ignore_thinktime", &[], "pauses do not shift the start times of paced operations"),
    ignored("rate_cycle", &["ratecycle"], "each paced operation has its own start time"),
    taken("latency_target", &[]),
    taken("latency_window", &[]),
    taken("latency_percentile", &[]),
    taken("latency_run", &[]),
    refused("max_latency", &[], "the measurement would decide when the run ends; the largest latency is reported"),
    refused("write_iolog", &[], REPLAY),
    refused("read_iolog", &[], REPLAY),
    ignored("read_iolog_chunked", &[], REPLAY),
    ignored("merge_blktrace_file", &[], REPLAY),
    ignored("merge_blktrace_scalars", &[], REPLAY),
    ignored("merge_blktrace_iters", &[], REPLAY),
    ignored("replay_no_stall", &[], REPLAY),
    ignored("replay_redirect", &[], REPLAY),
    ignored("replay_scale", &[], REPLAY),
    ignored("replay_align", &[], REPLAY),
    ignored("replay_time_scale", &[], REPLAY),
    ignored("replay_skip", &[], REPLAY),
    taken("thread", &["threads"]),
    taken("wait_for", &[]),
    ignored("nice", &[], OPERATOR),
    refused("prio", &[], PRIORITY),
    refused("prioclass", &[], PRIORITY),
    refused("cmdprio_percentage", &[], PRIORITY),
    refused("cmdprio_class", &[], PRIORITY),
    refused("cmdprio_hint", &[], PRIORITY),
    refused("cmdprio", &[], PRIORITY),
    refused("cmdprio_bssplit", &[], PRIORITY),
    taken("cpus_allowed", &[]),
    taken("cpumask", &[]),
    taken("cpus_allowed_policy", &[]),
    refused("numa_cpu_nodes", &[], NUMA),
    refused("numa_mem_policy", &[], NUMA),
    ignored("cgroup", &[], OPERATOR),
    ignored("cgroup_weight", &[], OPERATOR),
    ignored("cgroup_nodelete", &[], OPERATOR),
    refused("flow_id", &[], FLOW),
    refused("flow", &[], FLOW),
    refused("flow_sleep", &[], FLOW),
    refused("flow_watermark", &[], FLOW),
    taken("stonewall", &["wait_for_previous"]),
    taken("exitall", &[]),
    taken("exit_what", &[]),
    ignored("exitall_on_error", &[], "an error ends the load unless continue_on_error is given"),
    refused("exec_prerun", &[], SHELL),
    refused("exec_postrun", &[], SHELL),
    refused("uid", &[], OPERATOR),
    refused("gid", &[], OPERATOR),
    taken("verify", &[]),
    taken("do_verify", &[]),
    ignored("verify_offset", &[], VERIFYING),
    ignored("verify_interval", &[], VERIFYING),
    ignored("verify_pattern", &[], VERIFYING),
    ignored("verify_pattern_interval", &[], VERIFYING),
    ignored("verify_header_seed", &[], VERIFYING),
    ignored("verify_write_sequence", &[], VERIFYING),
    ignored("verify_fatal", &[], VERIFYING),
    ignored("verify_dump", &[], VERIFYING),
    ignored("verify_async", &[], "data is verified by the thread that reads it"),
    ignored("verify_async_cpus", &[], "data is verified by the thread that reads it"),
    ignored("verify_backlog", &[], "data is read back after all of it is written"),
    ignored("verify_backlog_batch", &[], "data is read back after all of it is written"),
    ignored("experimental_verify", &[], VERIFYING),
    refused("verify_only", &[], "`fstone load --verify` reads files back"),
    refused("verify_state_load", &[], VERIFYING),
    ignored("verify_state_save", &[], VERIFYING),
    refused("trim_percentage", &[], TRIM),
    refused("trim_verify_zero", &[], TRIM),
    refused("trim_backlog", &[], TRIM),
    refused("trim_backlog_batch", &[], TRIM),
    refused("num_range", &[], TRIM),
    refused("steadystate", &["ss"], STEADY),
    refused("steadystate_duration", &["ss_dur"], STEADY),
    refused("steadystate_ramp_time", &["ss_ramp"], STEADY),
    refused("steadystate_check_interval", &[], STEADY),
    taken("per_job_logs", &[]),
    taken("group_reporting", &[]),
    taken("new_group", &[]),
    ignored("stats", &[], "every job is reported"),
    taken("write_bw_log", &["bandwidth-log"]),
    taken("write_lat_log", &["latency-log"]),
    taken("write_iops_log", &[]),
    ignored("write_hist_log", &[], "histograms are in --output-format=json+"),
    ignored("log_entries", &[], LOGS),
    ignored("log_hist_msec", &[], LOGS),
    ignored("log_hist_coarseness", &[], LOGS),
    taken("log_avg_msec", &[]),
    ignored("log_max_value", &["log_window_value"], LOGS),
    ignored("log_offset", &[], LOGS),
    ignored("log_prio", &[], LOGS),
    ignored("log_issue_time", &[], LOGS),
    ignored("log_compression", &[], LOGS),
    ignored("log_compression_cpus", &[], LOGS),
    ignored("log_store_compressed", &[], LOGS),
    ignored("log_unix_epoch", &[], LOGS),
    ignored("log_alternate_epoch", &[], LOGS),
    ignored("log_alternate_epoch_clock_id", &[], LOGS),
    ignored("block_error_percentiles", &[], TRIM),
    ignored("bwavgtime", &[], LOGS),
    ignored("iopsavgtime", &[], LOGS),
    ignored("disk_util", &[], "a study has the device's counters"),
    ignored("disable_lat", &[], TIMES),
    ignored("disable_clat", &[], TIMES),
    ignored("disable_slat", &[], TIMES),
    ignored("disable_bw_measurement", &["disable_bw"], TIMES),
    taken("slat_percentiles", &[]),
    taken("clat_percentiles", &[]),
    taken("lat_percentiles", &[]),
    taken("percentile_list", &[]),
    ignored("significant_figures", &[], "it changes how figures are printed"),
    taken("continue_on_error", &[]),
    taken("ignore_error", &[]),
    ignored("error_dump", &[], "every error is reported with its path"),
    refused("profile", &[], "write the job file out in full"),
    // I/O engines' own.
    ignored("userspace_reap", &[], "completions are collected as they arrive"),
    taken("hipri", &[]),
    taken("hipri_percentage", &[]),
    ignored("fixedbufs", &[], "the engine's buffers are registered when that is possible"),
    ignored("registerfiles", &[], "files are registered when that is possible"),
    ignored("sqthread_poll", &[], "requests are submitted by the thread that makes them"),
    ignored("sqthread_poll_cpu", &[], "requests are submitted by the thread that makes them"),
    ignored("nonvectored", &[], "requests are not vectored"),
    taken("uncached", &[]),
    taken("nowait", &[]),
    ignored("force_async", &[], "the kernel decides"),
    ignored("libaio_vectored", &[], "requests are not vectored"),
    refused("readfua", &[], NETWORK),
    refused("writefua", &[], NETWORK),
    refused("hostname", &[], NETWORK),
    refused("port", &[], NETWORK),
    refused("protocol", &["proto"], NETWORK),
    refused("listen", &[], NETWORK),
    refused("pingpong", &[], NETWORK),
    refused("verb", &[], NETWORK),
    refused("cpuload", &[], "jobs that only compute are not supported"),
    refused("cpumode", &[], "jobs that only compute are not supported"),
    refused("cpuchunks", &[], "jobs that only compute are not supported"),
    refused("exit_on_io_done", &[], "jobs that only compute are not supported"),
    refused("program", &[], SHELL),
    refused("arguments", &[], SHELL),
    refused("http_verbose", &[], NETWORK),
    refused("https", &[], NETWORK),
    refused("http_mode", &[], NETWORK),
    refused("http_host", &[], NETWORK),
    refused("http_user", &[], NETWORK),
    refused("http_pass", &[], NETWORK),
    refused("http_s3_key", &[], NETWORK),
    refused("http_s3_keyid", &[], NETWORK),
    refused("http_s3_region", &[], NETWORK),
    refused("http_s3_sse_customer_key", &[], NETWORK),
    refused("http_s3_sse_customer_algorithm", &[], NETWORK),
    refused("http_s3_storage_class", &[], NETWORK),
    refused("http_swift_auth_token", &[], NETWORK),
    refused("cmd_type", &[], NETWORK),
    refused("write_mode", &[], NETWORK),
    refused("md_per_io_size", &[], NETWORK),
    refused("pi_act", &[], NETWORK),
    refused("pi_chk", &[], NETWORK),
    refused("apptag", &[], NETWORK),
    refused("apptag_mask", &[], NETWORK),
    refused("fdp", &[], NETWORK),
    refused("fdp_pli", &[], NETWORK),
    refused("libblkio_driver", &[], NETWORK),
    refused("libblkio_path", &[], NETWORK),
    refused("gpu_dev_id", &[], NETWORK),
    refused("gpu_dev_ids", &[], NETWORK),
    refused("cuda_io", &[], NETWORK),
    refused("rocm_io", &[], NETWORK),
    refused("sg_write_mode", &[], NETWORK),
    refused("ttl", &[], NETWORK),
    refused("skip_bad", &[], NETWORK),
    refused("conf", &[], NETWORK),
    refused("cont", &[], NETWORK),
    refused("busy_poll", &[], NETWORK),
    refused("spr_op", &[], "files have no regions of their own on an SSD"),
    refused("spr_num_regions", &[], "files have no regions of their own on an SSD"),
    refused("grace_time", &[], SHELL),
    refused("std_redirect", &[], SHELL),
    refused("random_sequence_stride", &[], "offsets are drawn, not stridden"),
    refused("donorname", &[], "files are not defragmented"),
    refused("inplace", &[], "files are not defragmented"),
    refused("pool", &[], NETWORK),
    refused("rbdname", &[], NETWORK),
    refused("clientname", &[], NETWORK),
    refused("volume", &[], NETWORK),
    refused("brick", &[], NETWORK),
    refused("uri", &[], NETWORK),
    refused("nfs_url", &[], NETWORK),
    refused("sprandom", &[], "files have no regions of their own on an SSD"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_there_once() {
        let mut seen = HashSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} twice");
        }
        assert_eq!(find("bs").map(|option| option.name), Some("blocksize"));
        assert_eq!(find("time-based").map(|option| option.name), Some("time_based"));
        assert!(find("blocksiz").is_none());
    }
}
