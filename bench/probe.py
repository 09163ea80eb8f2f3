#!/usr/bin/env python3
"""Draws random jobs, runs them in the original and in fstone, compares what they did and left, and shortens each job that differs.

    probe.py fio|sysbench|mdtest|ior FSTONE ORIGINAL COUNT|JOB SEED DIRECTORY [LAUNCHER...]

JOB is one job, as a run prints it. DIRECTORY is emptied for each run: bench/compare-fio.sh, compare-sysbench.sh and compare-mdtest-ior.sh give it a new ext4. What is compared: whether the
exit status is 0, and names, sizes and allocated blocks of files. Of fio, reads, writes (their sum in a mix), bytes, fsyncs and the error of each job,
sizes of calls as strace sees them, and what the device did; of sysbench, events, and reads, writes and syncs as strace sees them; of mdtest and IOR, the
rows of their tables, and the calls of each rank: which calls on which items, which bytes at which offsets, in which order. Jobs that fstone refuses are
counted with its reason, and those that differ as the pages on the formats say with theirs.
"""

import atexit, collections, contextlib, ctypes, glob, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time

FIO = {
    "rw": ["read", "write", "rw", "randread", "randwrite", "randrw", "write:4k", "read:-8k", "randread:4"],
    "bs": ["4k", "512", "1k", "16k", "64k", "4k,8k", "3k"],
    "bsrange": ["4k-16k", "4k-10k", "1k-8k"],
    "bssplit": ["4k/50:8k/50", "512/10:4k/60:16k"],
    "ba": ["4k", "8k"],
    "size": ["64k", "100k", "256k", "1m", "12345"],
    "io_size": ["32k", "96k", "2m"],
    "filesize": ["32k", "9k"],
    "nrfiles": ["2", "3", "8"],
    "offset": ["4k", "64k", "8k"],
    "offset_increment": ["16k"],
    "numjobs": ["2", "3"],
    "loops": ["2", "3"],
    "number_ios": ["5", "17"],
    "file_service_type": ["sequential", "random", "roundrobin", "random:3", "roundrobin:4"],
    "file_append": ["1"],
    "fsync": ["1", "4", "7"],
    "fdatasync": ["1", "4", "6"],
    "end_fsync": ["1"],
    "fsync_on_close": ["1"],
    "sync_file_range": ["write:8", "wait_before,write,wait_after:3"],
    "fallocate": ["none", "native", "posix", "keep", "truncate"],
    "overwrite": ["1"],
    "pre_read": ["1"],
    "create_only": ["1"],
    "unlink": ["1"],
    "unlink_each_loop": ["1"],
    "random_generator": ["lfsr"],
    "invalidate": ["0"],
    "norandommap": ["1"],
    "random_distribution": ["zipf:1.1", "pareto:0.2", "normal:10", "zoned:60/10:40/90"],
    "percentage_random": ["50", "0"],
    "rwmixread": ["0", "10", "75", "100"],
    "direct": ["1"],
    "sync": ["sync", "dsync"],
    "ioengine": ["psync", "sync", "libaio", "io_uring", "mmap", "falloc", "splice"],
    "iodepth": ["2", "8"],
    "iodepth_batch": ["4"],
    "thinktime": ["10"],
    "thinktime_iotime": ["100"],
    "blocksize_unaligned": ["1"],
    "rate_iops": ["5000", "4000,1000", ",3000", "3000,"],
    "rate": ["8m", "16m,4m", ",8m"],
    "zero_buffers": ["1"],
    "zonemode": ["strided --zonesize=16k --zoneskip=16k"],
    "buffer_pattern": ["0xdeadbeef"],
    "fadvise_hint": ["0", "random"],
    "group_reporting": ["1"],
    "thread": ["1"],
    "openfiles": ["1", "2"],
    "create_on_open": ["1"],
    "verify": ["crc32c", "md5"],
    "do_verify": ["0"],
    "verify_backlog": ["1", "5", "100"],
    "filename": ["one", "one:two"],
    "stonewall": ["1"],
    "continue_on_error": ["all"],
}
SYSBENCH = {
    "file-test-mode": ["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"],
    "file-num": ["1", "3", "5"],
    "file-total-size": ["1M", "600K", "2M"],
    "events": ["7", "50", "300"],
    "file-block-size": ["4K", "64K", "512"],
    "threads": ["2", "3"],
    "file-io-mode": ["async", "mmap"],
    "file-async-backlog": ["4"],
    "file-extra-flags": ["sync", "dsync", "direct"],
    "file-fsync-freq": ["0", "7", "20"],
    "file-fsync-all": ["on"],
    "file-fsync-end": ["off"],
    "file-fsync-mode": ["fdatasync"],
    "file-merged-requests": ["3", "4"],
    "file-rw-ratio": ["0", "0.5", "3"],
    "rate": ["2000"],
    "rand-type": ["gaussian", "special", "pareto"],
    "rand-seed": ["7"],
    "validate": ["on"],
    "percentile": ["99"],
}
MDTEST = {
    "n": ["1", "3", "10", "17"],
    "I": ["2", "5"],
    "z": ["1", "2"],
    "b": ["1", "2", "3"],
    "w": ["0", "100", "4096", "70000"],
    "e": ["0", "50", "4096"],
    "N": ["1"],
    "i": ["2", "3"],
    "random-seed": ["7"],
    "x": ["created"],
    "np": ["2", "3"],
    **{flag: [""] for flag in "L u F D C T E U r y Y R P Z t v posix.odirect".split()},
}
IOR = {
    "b": ["4k", "64k", "47008", "1m"],
    "t": ["4k", "1k", "47008", "64k"],
    "s": ["2", "5"],
    "i": ["2"],
    "np": ["2", "3"],
    "G": ["5"],
    "l": ["random"],
    **{flag: [""] for flag in "F w r z e Y k m g v x K posix.odirect".split()},
}


def files():
    found = {}
    for folder, _, names in os.walk("."):
        for name in names:
            of = os.stat(os.path.join(folder, name))
            # fio's state of verification; mdtest writes its status only with a stonewall.
            if not name.endswith(".state") and name != "created":
                found[name] = (of.st_size, of.st_blocks)
    return found


def empty():
    for name in os.listdir("."):
        shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)


# A program that takes longer hangs, also on a machine that is busy.
LIMIT_S = 180


def members(session):
    """The processes of a session."""
    for name in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(name).read()
        except OSError:
            continue
        if text[text.rindex(")") + 2 :].split()[3] == str(session):
            yield int(name.split("/")[2])


def end(program):
    """Ends a program, which began a session, with all that it started."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        until = time.monotonic() + patience
        while (left := list(members(program.pid))) and time.monotonic() < until:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            program.poll()
            time.sleep(0.1)
    program.communicate()


def run(command):
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        out, told = program.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        end(program)
        return None
    except BaseException:
        end(program)
        raise
    return subprocess.CompletedProcess(command, program.returncode, out, told)


DEVICE = ("reads", "sectors read", "writes", "sectors written")


def requests():
    """What the device of the filesystem did until now, with what is still cached written."""
    root = os.open(".", os.O_RDONLY)
    ctypes.CDLL(None).syncfs(root)
    os.close(root)
    device = os.stat(".").st_dev
    try:
        counts = open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read().split()
    except FileNotFoundError:
        return None
    return [int(counts[index]) for index in (0, 2, 4, 6)]


def near(one, other, least=2, share=0.2):
    return abs(one - other) <= max(least, share * max(one, other))


# How far counts of the device may differ: so much, or this share. What goes through the page cache is merged and written back by the kernel, when it
# wants; the filesystem's own blocks come on top in both.
WITH_CACHE = {"reads": (8, 0.25), "sectors read": (256, 0.1), "sectors written": (256, 0.1)}
DIRECT = {"reads": (8, 0.02), "sectors read": (64, 0.02), "writes": (16, 0.1), "sectors written": (256, 0.1)}


def blocks_of(size, block):
    """How many blocks, and the rest."""
    number = lambda text: int(text[:-1]) << {"k": 10, "m": 20}[text[-1].lower()] if text[-1].lower() in "km" else int(text)
    return divmod(number(size), number(block))


def rw_of(job):
    way = job.get("rw", "read").split(":")[0].removeprefix("rand")
    return ["read", "write"] if way == "rw" else [way]


def has_part(job):
    """Whether files end with a part of a block."""
    smallest = min(re.split("[-:,]", job.get("bsrange", job.get("bs", "4k")).split("/")[0]), key=lambda size: blocks_of(size, "1")[0])
    each = blocks_of(job["filesize"], "1")[0] if "filesize" in job else blocks_of(job["size"], "1")[0] // int(job.get("nrfiles", 1))
    return each % blocks_of(smallest, "1")[0] != 0


def has_odd_files(job):
    blocks, rest = blocks_of(job["file-total-size"], job.get("file-block-size", "16K"))
    return rest > 0 or blocks % int(job["file-num"]) > 0


def is_random(job):
    return job["rw"].startswith("rand")


def original_fails(*errors):
    """That it ends with one of these errors, and fstone does what was asked."""

    def names(found):
        all_known = all(there in (0, *errors) for name, (there, _) in found.items() if name.startswith("error"))
        # Errors that it goes on after do not make it fail.
        has_failed = found.get("failed") == (True, False) or any(name.startswith("error") and there in errors for name, (there, _) in found.items())
        return found if has_failed and all_known else ()

    return names


def original_does_less(found):
    """That it moves less and leaves less, without an error."""
    less = lambda there, here: (there or 0) < (here or 0)
    total = lambda moved: sum(operations for operations, _ in moved or [])
    rules = {
        "moved": lambda there, here: total(there) < total(here),
        "calls: (?!f)|device|syncs": less,
        "sizes": lambda there, here: set(there or []) <= set(here or []),
        "files": lambda there, here: not there,
        "file ": lambda there, here: (there[0] or 0) <= (here[0] or 0) and there[1] <= here[1],
    }
    return [name for name, values in found.items() if any(re.match(rule, name) and right(*values) for rule, right in rules.items())]


def syncs(least, most):
    """That it makes more fsyncs, or fewer if these are negative."""
    return lambda found: [name for name, (there, here) in found.items() if re.match("syncs|calls: f", name) and least <= (there or 0) - (here or 0) <= most]


def shorter_files(found):
    return [name for name in found if name in ("failed", "rows") or name.startswith("calls of")] if found.get("failed") == (False, True) else ()


def opens_at_the_end(found):
    """That fstone makes the same calls, and then opens files."""
    rest = lambda there, here: len(there) == 2 and there[0].split()[0] == there[1].split()[0] and all(call.startswith("openat") for call in here[1:-1])
    return [name for name, values in found.items() if name.startswith("calls of") and rest(*values)]


def reads_a_part(found):
    of_calls = [name for name, (there, here) in found.items() if name.startswith("calls: read") and here == 0 < there <= 8]
    return of_calls + [name for name, (there, here) in found.items() if name == "sizes" and set(there) > set(here)]


# fstone looks for holes in files of an earlier run.
LOOKS_FOR_HOLES = ("no look for holes when all is read", lambda job: job.keys() & {"r", "E"}, opens_at_the_end)

# Why the original differs: which options have to meet, and what of the differences that explains, which goes one way. The pages on the formats have them.
EXPLAINED = {
    "fio": [
        ("pre_read with direct=1 reads into a buffer that is not aligned", lambda job: {"pre_read", "direct"} <= job.keys() and "read" in rw_of(job), original_fails(5, 22)),
        ("create_on_open makes empty files to read", lambda job: "create_on_open" in job and "read" in rw_of(job), original_fails(5, 61)),
        ("create_on_open makes no files with create_only", lambda job: {"create_on_open", "create_only"} <= job.keys() and "read" in rw_of(job), original_does_less),
        ("verify with gaps makes further passes", lambda job: "verify" in job and ":" in job["rw"] and not is_random(job), lambda found: [name for name, (there, here) in found.items() if name in ("device: reads", "device: sectors read") and there > here]),
        ("verify in a mix takes good blocks for bad ones", lambda job: "verify" in job and len(rw_of(job)) > 1, original_fails(84)),
        ("create_on_open makes empty files to map", lambda job: "create_on_open" in job and job.get("ioengine") == "mmap", original_fails()),
        ("zipf and pareto choose the part of a block, and end", lambda job: job.get("random_distribution", "")[:4] in ("zipf", "pare") and is_random(job) and has_part(job), original_does_less),
        ("zipf and pareto put several ranks on one block", lambda job: job.get("random_distribution", "")[:4] in ("zipf", "pare") and is_random(job), lambda found: [name for name in original_does_less(found) if name.startswith("device")]),
        ("a burst comes to the part of a block, and ends", lambda job: ":" in job["rw"] and is_random(job) and has_part(job), original_does_less),
        ("a map in blocks of the direction that is not used", lambda job: "," in job.get("bs", "") and is_random(job) and len(rw_of(job)) == 1, original_does_less),
        ("lfsr with a blockalign has neither map nor numbers", lambda job: {"ba", "random_generator"} <= job.keys() and is_random(job), original_does_less),
        ("pre_read reads the part of a block", lambda job: "pre_read" in job and has_part(job), reads_a_part),
        ("fsync_on_close opens and syncs a file once more, to look for another block", lambda job: "fsync_on_close" in job and (":" in job["rw"] or has_part(job)), syncs(1, 8)),
        ("fsync where a pass ends", lambda job: job.keys() & {"loops", "io_size"} and job.keys() & {"fsync", "fdatasync", "sync_file_range"}, syncs(1, 200)),
        ("fadvise_hint=0 leaves it to the kernel what random reads read ahead", lambda job: job.get("fadvise_hint") == "0" and is_random(job) and "read" in rw_of(job), lambda found: [name for name in found if name in ("device: reads", "device: sectors read")]),
        ("percentage_random=0 in a mix of files with a part of a block", lambda job: job.get("percentage_random") == "0" and len(rw_of(job)) > 1 and "filename" in job and has_part(job), lambda found: [name for name, (there, here) in found.items() if name.startswith("moved")]),
        ("fsync with a queue", lambda job: job.get("ioengine") in ("libaio", "io_uring") and "iodepth" in job and job.keys() & {"fsync", "fdatasync"}, syncs(-8, -1)),
    ],
    "sysbench": [
        ("validation comes to places that are no whole blocks", lambda job: "validate" in job and has_odd_files(job), original_fails()),
        ("direct I/O comes to places that are no whole blocks", lambda job: job.get("file-extra-flags") == "direct" and has_odd_files(job), original_fails()),
        ("validation takes a merged read for one block", lambda job: {"validate", "file-merged-requests"} <= job.keys() and job["file-test-mode"] == "seqrd", original_fails()),
    ],
    "mdtest": [
        ("files that are shorter than -e are no errors", lambda job: {"E", "e"} <= job.keys(), shorter_files),
        LOOKS_FOR_HOLES,
    ],
    "ior": [
        LOOKS_FOR_HOLES,
        ("-z deals the transfers of a shared file to tasks by chance", lambda job: {"z", "np"} <= job.keys() and "F" not in job, lambda found: [name for name in found if name.startswith("calls of")]),
        ("a file to be read at random is looked at for holes first", lambda job: {"r", "z"} <= job.keys(), lambda found: [name for name, (there, here) in found.items() if name.startswith("calls of") and here[1].startswith("openat items")]),
    ],
}


CALLS_OF_FIO = ["strace", "-f", "-ff", "--seccomp-bpf", "-y", "-qq", "-s", "0", "-e"]
CALLS_OF_FIO += ["trace=execve,read,write,pread64,pwrite64,preadv,pwritev,preadv2,pwritev2,io_submit,fallocate,fsync,fdatasync,sync_file_range"]


TRACE = "openat,newfstatat,unlink,unlinkat,mkdir,mkdirat,rmdir,rename,renameat,renameat2,read,write,pread64,pwrite64,fsync,lseek"
RANK = f"exec strace -f -ff --seccomp-bpf -y -ttt -qq -s 0 -o $0.${{OMPI_COMM_WORLD_RANK:-0}} -e trace={TRACE} \"$@\""


# What jobs are drawn from, and what each of them has.
POOLS = {
    "fio": (FIO, ["rw", "size"]),
    "sysbench": (SYSBENCH, ["file-test-mode", "file-num", "file-total-size", "events"]),
    "mdtest": (MDTEST, ["n"]),
    "ior": (IOR, []),
}


class Probe:
    def __init__(self, tool, fstone, original, count, seed, place, *launcher):
        self.tool, self.fstone, self.original, self.count, self.seed, self.launcher = tool, fstone, original, count, int(seed), launcher
        self.pool, self.always = POOLS[tool]
        self.outcome = getattr(self, f"outcome_of_{'ranks' if tool in ('mdtest', 'ior') else tool}")
        self.traces = tempfile.mkdtemp(prefix="fstone-probe-")
        atexit.register(shutil.rmtree, self.traces, True)
        os.chdir(place)
        self.place = os.getcwd()

    def sizes_of_calls(self):
        """How often data of files was asked for, by call and size, and how often files were synced. Not of the first thread, in which both programs lay files out."""
        found = collections.Counter()
        for name in glob.glob(f"{self.traces}/calls.*"):
            text = open(name, errors="replace").read()
            if "execve(" in text:
                continue
            for line in text.splitlines():
                if self.place not in line:
                    continue
                synced = re.match(r"(fsync|fdatasync|sync_file_range)\(", line)
                if synced:
                    found[synced[1]] += 1
                moved = re.match(r"(p?)(read|write)(?:64|v2?)?\(\d+<.*>, .*?, (\d+)(?:, \d+)?\)", line)
                if moved:
                    found[f"{moved[2]} {moved[3]}"] += 1
                for call, size in re.findall(r"IOCB_CMD_P(READ|WRITE), .*?aio_nbytes=(\d+)", line):
                    found[f"{call.lower()} {size}"] += 1
                allocated = re.match(r"fallocate\(\d+<.*>, 0, \d+, (\d+)\)", line)
                if allocated:
                    found[f"write {allocated[1]}"] += 1
        return found

    def outcome_of_fio(self, program, job):
        empty()
        line = " ".join(f"--{name}={value}" for name, value in job.items()).split()
        for name in glob.glob(f"{self.traces}/calls.*"):
            os.remove(name)
        before = requests()
        ended = run([*CALLS_OF_FIO, "-o", f"{self.traces}/calls", *program, "--name=job", *line, "--output-format=json"])
        if ended is None:
            return "timeout", ""
        if ended.returncode == 2 and program[0] == self.fstone:
            return None, ended.stderr
        after = requests()
        try:
            jobs = json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"]
        except ValueError:
            return {"failed": ended.returncode != 0}, ended.stderr
        found = {"failed": ended.returncode != 0, "files": files()}
        ways = rw_of(job)
        mixed, drawn = len(ways) > 1, any(name in job for name in ("bsrange", "bssplit", "blocksize_unaligned"))
        for number, of in enumerate(jobs):
            moved = [(of[kind]["total_ios"], of[kind]["io_bytes"]) for kind in ("read", "write")]
            found[f"error of {number}"] = of["error"]
            if mixed:
                # What is read back is what was written.
                moved = [moved[0]] if "verify" in job and job.get("do_verify") != "0" else [tuple(map(sum, zip(*moved)))]
            # What is read back counts towards an io_size.
            if not drawn and not (mixed and ("," in job.get("bs", "") or {"verify", "io_size"} <= job.keys())):
                found[f"moved by {number}"] = moved
            # fio's JSON leaves out fdatasyncs and the fsync at the end.
            if not mixed and not drawn and not any(name in job for name in ("fdatasync", "end_fsync", "fsync_on_close", "sync_file_range")):
                found[f"syncs of {number}"] = of["sync"]["total_ios"]
        calls = self.sizes_of_calls()
        if not mixed and not drawn and "verify" not in job and job.get("ioengine") not in ("io_uring", "mmap", "splice"):
            found["calls"] = dict(calls)
        elif calls and not drawn and "verify" not in job:
            # By chance a few are all of one direction.
            found["sizes"] = sorted({call.split()[-1] for call in calls if call[0] in "rw"}) if sum(calls.values()) >= 16 else None
        if after:
            found["device"] = dict(zip(DEVICE, (late - early for late, early in zip(after, before))))
        return found, ended.stderr

    def outcome_of_sysbench(self, program, job):
        empty()
        words = [*program, "fileio", "--time=0", *(f"--{name}={value}" for name, value in job.items())]
        made = run([*words, "prepare"])
        ended = made and run(["strace", "-f", "-y", "-qq", "-o", f"{self.traces}/calls", "-e", "trace=pread64,pwrite64,fsync,fdatasync,msync", *words, "run"])
        if ended is None:
            return "timeout", ""
        if program[0] == self.fstone and "error" in ended.stderr and "not supported" in ended.stderr:
            return None, ended.stderr
        events = re.search(r"total number of events: +(\d+)", ended.stdout)
        calls = collections.Counter()
        mode = job.get("file-fsync-mode", "fsync")
        for line in open(f"{self.traces}/calls"):
            # A mapping is synced with msync there and with fsync here.
            if "resumed>" not in line and ("test_file" in line or "msync(" in line):
                calls[re.sub(r"^\d+ +|\(.*\n", "", line).replace("msync", mode)] += 1
        mixed, threads = job["file-test-mode"] == "rndrw", int(job.get("threads", 1))
        if mixed and (threads > 1 or job.get("file-io-mode")):
            # Which of the two comes next is a race.
            calls = {"all": calls["pread64"] + calls["pwrite64"]}
        if job.get("file-io-mode") == "async":
            calls = {}
        found = {"failed": made.returncode != 0 or ended.returncode != 0, "events": events and events[1], "calls": dict(calls)}
        return {**found, "files": files()}, (made.stderr + ended.stderr + ended.stdout)[-200:]

    def calls_of(self, rank):
        """What a rank did with files and items, a text for each call. Not: IOR's questions about a file, and removing it; opening directories."""
        lines, offset, found = [], collections.Counter(), []
        for name in glob.glob(f"{self.traces}/calls.{rank}.*"):
            lines += open(name, errors="replace").readlines()
        for line in sorted(lines):
            match = re.match(r"[\d.]+ (\w+)\((.*)\) += (-?\d+)", line)
            if not match:
                continue
            call, arguments, result = match[1], match[2], int(match[3])
            at = re.match(r"(?:\d+|AT_FDCWD)<(.*?)>(, )?", arguments)
            named = re.match(r'"(.*?)"', arguments[at.end() if at else 0 :])
            moves = call in ("read", "write", "pread64", "pwrite64", "fsync", "lseek")
            if not (at or named):
                continue
            path = os.path.relpath(os.path.join(at[1] if at else "", named[1] if named and not moves else "."))
            item = re.search(r"(dir|file)\.mdtest\.[-.\d]*\d(?=$|\.r$|-XX$)", path)
            if path.startswith("..") or "O_DIRECTORY" in arguments or "O_EXCL" in arguments or not (item or path.startswith("items")):
                continue
            if call == "lseek":
                offset[path] = result
            elif moves and call != "fsync":
                size = re.search(r", (\d+)(?:, (\d+))?$", arguments)
                place = int(size[2]) if size[2] else offset[path]
                offset[path] = place + result
                found.append(f"{call[call[0] == 'p':].replace('64', '')} {path} {size[1]}@{place} = {result}")
            elif call in ("fsync", "openat"):
                created = "create " if "O_CREAT" in arguments and item else ""
                direct = "direct " if "O_DIRECT" in arguments else ""
                text = f"{call} {created}{direct}{path}" + (" failed" if result < 0 else "")
                # IOR 4.1 syncs twice; fstone looks whether a file is there.
                found += [text] * (found[-1:] != [text])
            elif item and (call != "newfstatat" or result == 0):
                # fstone looks first whether a file of the shared tree is there.
                call = "rmdir" if "AT_REMOVEDIR" in arguments else call.replace("newf", "").replace("2", "").removesuffix("at")
                # Renamed directories get other names than mdtest's.
                found.append(f"{call} {path.removesuffix('.r')}" + (" failed" if result < 0 else "") if call != "rename" else call)
        return found

    def outcome_of_ranks(self, program, job):
        """mdtest and IOR. What only uses files is run after what makes them."""
        empty()
        if self.tool == "ior":
            # Only then, and always, are files of repetitions told apart; files that are only read are kept.
            job = {**job, **({"m": ""} if "i" in job else {}), **({"k": ""} if "r" in job else {})}
            steps, where = [{"w": "", "k": ""}] if "r" in job and "w" not in job else [], ["-o", "items"]
        else:
            steps, where = [{"C": ""}] if any(phase in job for phase in "TEUr") and "C" not in job else [], ["-d", "made"]
        if steps:
            steps = [{**{name: value for name, value in job.items() if name not in ("T", "E", "U", "r")}, **steps[0]}]
        ranks, calls = int(job.get("np", 1)), []
        for step in [*steps, job]:
            for name in glob.glob(f"{self.traces}/calls.*"):
                os.remove(name)
            options = [word for name, value in step.items() if name != "np" for word in ("-" * min(len(name), 2) + name, value) if word]
            ended = run([*(self.launcher if ranks > 1 else []), *(["-n", str(ranks)] if ranks > 1 else []), "sh", "-c", RANK, f"{self.traces}/calls", *program, *options, *where])
            if ended is None:
                return "timeout", ""
            if ended.returncode == 2 and program[0] == self.fstone:
                return None, ended.stderr
            calls.append([self.calls_of(rank) for rank in range(ranks)])
        if "R" in job or "z" in job and self.tool == "ior" or "random-seed" in job:
            calls = [[sorted(rank) for rank in step] for step in calls]
        if self.tool == "ior":
            rows = [tuple(row.split()[index] for index in (0, 4, 5, 10)) for row in re.findall(r"^(?:write|read) .*", ended.stdout, re.M)[: 2 * int(job.get("i", 1))] if len(row.split()) == 11]
        else:
            rows = sorted({(name, float(value) > 0 or "P" in job or "Z" in job) for name, value in re.findall(r"^   ([A-Z][a-z]+ [a-z]+) +([\d.]+)", ended.stdout, re.M)})
        return {"failed": ended.returncode != 0, "rows": rows, "calls": calls, "files": files()}, ended.stderr[-300:] + ended.stdout[-300:]

    def differences(self, job, theirs, ours):
        """What differs, by name: there, and here."""
        if "timeout" in (theirs, ours):
            return {} if theirs == ours else {"end": (theirs, ours)}
        if theirs["failed"] and ours["failed"]:
            return {}
        found = {}
        for name in sorted(theirs.keys() | ours.keys()):
            there, here = theirs.get(name), ours.get(name)
            if name == "files" and there and here:
                for file in sorted(there.keys() | here.keys()):
                    (size, blocks), (our_size, our_blocks) = there.get(file, (None, 0)), here.get(file, (None, 0))
                    # Stamped files are whole sectors. The extents of one may need a block of metadata more.
                    stamped = job.keys() & {"verify", "validate"} and None not in (size, our_size) and -(-size // 512) * 512 == our_size
                    if size != our_size and not stamped or abs(blocks - our_blocks) > 16:
                        found[f"file {file}"] = ((size, blocks), (our_size, our_blocks))
            elif name == "device" and there and here:
                for what, (least, share) in (DIRECT if "direct" in job else WITH_CACHE).items():
                    # A mix draws what it reads and writes, and what it wrote is cached as long as it is not written back.
                    drawn = len(rw_of(job)) > 1 and "direct" not in job
                    # What several passes write through the cache is written back once, or for each, and what is removed perhaps not at all.
                    drawn |= what == "sectors written" and "direct" not in job and bool(job.keys() & {"loops", "io_size", "unlink"})
                    if not drawn and not near(there[what], here[what], least, share):
                        found[f"device: {what}"] = (there[what], here[what])
            elif name == "calls" and self.tool in ("mdtest", "ior") and there and here:
                for rank, (their, our) in enumerate(zip(sum(there, []), sum(here, []))):
                    if their != our:
                        same = next((at for at, pair in enumerate(zip(our, their)) if pair[0] != pair[1]), min(len(our), len(their)))
                        found[f"calls of {rank}"] = tuple([f"{same} alike", *side[same : same + 3], f"{len(side)} in all"] for side in (their, our))
            elif name == "calls" and self.tool != "sysbench" and there is not None and here is not None:
                for call in sorted(there.keys() | here.keys()):
                    if there.get(call) != here.get(call):
                        found[f"calls: {call}"] = (there.get(call, 0), here.get(call, 0))
            elif name.startswith("moved") and there and here and job["rw"] == "rw" and near(there[0][0], here[0][0]):
                # How many operations a mix of two positions makes follows from the draw.
                pass
            elif there != here and not (name == "sizes" and None in (there, here)):
                found[name] = (there, here)
        return found

    def explained(self, job, found):
        """Why all that differs does, if the pages on the formats say so."""
        left, reasons = dict(found), []
        for why, applies, names in EXPLAINED[self.tool]:
            known = list(names(left)) if left and applies(job) else []
            reasons += [why] if known else []
            for name in known:
                del left[name]
        return "; ".join(reasons) if not left else None

    def differs(self, job):
        """None if fstone refuses it; else whether it differs, and what was said."""
        ours, said = self.outcome([self.fstone, self.tool], job)
        if ours is None:
            return None, said
        theirs, their_words = self.outcome([self.original], job)
        found = self.differences(job, theirs, ours)
        why = self.explained(job, found) if found else None
        if why:
            return False, why
        listed = "".join(f"{name}: {self.tool} {there}, fstone {here}\n" for name, (there, here) in found.items())
        return bool(found), f"{listed}{their_words[:200]}{said[:200]}" if found else ""

    def shortest(self, job):
        for name in list(job):
            less = {other: value for other, value in job.items() if other != name}
            if all(name in less for name in self.always) and self.differs(less)[0]:
                return self.shortest(less)
        return job

    def jobs(self):
        if not self.count.isdigit():
            yield dict(option.split("=", 1) for option in self.count.split())
            return
        for _ in range(int(self.count)):
            yield self.drawn()

    def drawn(self):
        names = random.sample([name for name in self.pool if name not in self.always], random.choice([1, 2, 2, 3]))
        job = {name: random.choice(self.pool[name]) for name in [*self.always, *names]}
        if "verify" in job and "read" in job.get("rw", ""):
            job["rw"] = "write"
        return job

    def run(self):
        """Prints what differs; returns whether anything does."""
        refused, known, different, same = collections.Counter(), collections.Counter(), {}, 0
        random.seed(self.seed)
        for job in self.jobs():
            found, said = self.differs(job)
            if found is None:
                refused[next((text.split("]: ")[-1] for text in said.splitlines() if "error" in text), said[:80])] += 1
            elif found:
                short = self.shortest(job)
                line = " ".join(f"{name}={value}" for name, value in sorted(short.items()))
                if line not in different:
                    different[line] = said if short == job else self.differs(short)[1]
                    print(f"- `{line}`\n{different[line]}", flush=True)
            elif said:
                known[said] += 1
            else:
                same += 1
        counts = f"{same} equal, {sum(refused.values())} refused, {sum(known.values())} explained, {len(different)} shortest jobs that differ"
        print(f"\n{self.count} jobs with seed {self.seed}: {counts}")
        for why, times in known.most_common():
            print(f"- explained {times} times: {why}")
        for why, times in refused.most_common():
            print(f"- refused {times} times: {why}")
        return bool(different)


sys.exit(Probe(*sys.argv[1:]).run())
