#!/usr/bin/env python3
"""Draws random jobs, runs them in the original and in fstone, compares what they did and left, and shortens each job that differs.

    probe.py fio|sysbench|mdtest|ior FSTONE ORIGINAL COUNT SEED DIRECTORY [LAUNCHER...]

DIRECTORY is emptied for each run: bench/compare-fio.sh, compare-sysbench.sh and compare-mdtest-ior.sh give it a new ext4. What is compared: whether the
exit status is 0, and names, sizes and allocated blocks of files. Of fio, reads, writes (their sum in a mix), bytes, fsyncs and the error of each job; of
sysbench, events, and reads, writes and syncs as strace sees them; of mdtest and IOR, the rows of their tables, and the calls of each rank: which calls on
which items, which bytes at which offsets, in which order. Jobs that fstone refuses are counted with its reason.
"""

import collections, glob, json, os, random, re, shutil, subprocess, sys

tool, fstone, original, count, seed, place, *launcher = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]), *sys.argv[6:]
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
    "rate_iops": ["5000"],
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


def run(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None


def outcome_of_fio(program, job):
    empty()
    line = " ".join(f"--{name}={value}" for name, value in job.items()).split()
    ended = run([*program, "--name=job", *line, "--output-format=json"])
    if ended is None:
        return "timeout", ""
    if ended.returncode == 2 and program[0] == fstone:
        return None, ended.stderr
    mixed = job.get("rw", "read") in ("rw", "randrw")
    try:
        jobs = json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"]
    except ValueError:
        return {"failed": ended.returncode != 0}, ended.stderr
    figures = []
    for of in jobs:
        moved = [(of[kind]["total_ios"], of[kind]["io_bytes"]) for kind in ("read", "write")]
        drawn = mixed or any(name in job for name in ("bsrange", "bssplit"))
        if mixed:
            moved = [tuple(map(sum, zip(*moved)))]
        if any(name in job for name in ("bsrange", "bssplit")) or (mixed and "," in job.get("bs", "")):
            moved = ["drawn"]
        # fio's JSON leaves out fdatasyncs and the fsync at the end.
        left_out = any(name in job for name in ("fdatasync", "end_fsync", "fsync_on_close", "sync_file_range"))
        figures.append((of["error"], moved, "not compared" if drawn or left_out else of["sync"]["total_ios"]))
    return {"failed": ended.returncode != 0, "jobs": figures, "files": files()}, ended.stderr


def outcome_of_sysbench(program, job):
    empty()
    words = [*program, "fileio", "--time=0", *(f"--{name}={value}" for name, value in job.items())]
    made = run([*words, "prepare"])
    ended = made and run(["strace", "-f", "-y", "-qq", "-o", "../calls", "-e", "trace=pread64,pwrite64,fsync,fdatasync,msync", *words, "run"])
    if ended is None:
        return "timeout", ""
    if program[0] == fstone and "error" in ended.stderr and "not supported" in ended.stderr:
        return None, ended.stderr
    events = re.search(r"total number of events: +(\d+)", ended.stdout)
    calls = collections.Counter()
    mode = job.get("file-fsync-mode", "fsync")
    for line in open("../calls"):
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


def calls_of(rank):
    """What a rank did with files and items, a text for each call. Not: IOR's questions about a file, and removing it; opening directories."""
    lines, offset, found = [], collections.Counter(), []
    for name in glob.glob(f"../calls.{rank}.*"):
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


TRACE = "openat,newfstatat,unlink,unlinkat,mkdir,mkdirat,rmdir,rename,renameat,renameat2,read,write,pread64,pwrite64,fsync,lseek"
RANK = f"exec strace -f -ff --seccomp-bpf -y -ttt -qq -s 0 -o ../calls.${{OMPI_COMM_WORLD_RANK:-0}} -e trace={TRACE} \"$@\""


def outcome_of_ranks(program, job):
    """mdtest and IOR. What only uses files is run after what makes them."""
    empty()
    if tool == "ior":
        # Only then, and always, are files of repetitions told apart; files that are only read are kept.
        job = {**job, **({"m": ""} if "i" in job else {}), **({"k": ""} if "r" in job else {})}
        steps, where = [{"w": "", "k": ""}] if "r" in job and "w" not in job else [], ["-o", "items"]
    else:
        steps, where = [{"C": ""}] if any(phase in job for phase in "TEUr") and "C" not in job else [], ["-d", "made"]
    if steps:
        steps = [{**{name: value for name, value in job.items() if name not in ("T", "E", "U", "r")}, **steps[0]}]
    ranks, calls = int(job.get("np", 1)), []
    for step in [*steps, job]:
        for name in glob.glob("../calls.*"):
            os.remove(name)
        options = [word for name, value in step.items() if name != "np" for word in ("-" * min(len(name), 2) + name, value) if word]
        ended = run([*(launcher if ranks > 1 else []), *(["-n", str(ranks)] if ranks > 1 else []), "sh", "-c", RANK, "rank", *program, *options, *where])
        if ended is None:
            return "timeout", ""
        if ended.returncode == 2 and program[0] == fstone:
            return None, ended.stderr
        calls.append([calls_of(rank) for rank in range(ranks)])
    if "R" in job or "z" in job and tool == "ior" or "random-seed" in job:
        calls = [[sorted(rank) for rank in step] for step in calls]
    if tool == "ior":
        rows = [tuple(row.split()[index] for index in (0, 4, 5, 10)) for row in re.findall(r"^(?:write|read) .*", ended.stdout, re.M)[: 2 * int(job.get("i", 1))] if len(row.split()) == 11]
    else:
        rows = sorted({(name, float(value) > 0 or "P" in job or "Z" in job) for name, value in re.findall(r"^   ([A-Z][a-z]+ [a-z]+) +([\d.]+)", ended.stdout, re.M)})
    return {"failed": ended.returncode != 0, "rows": rows, "calls": calls, "files": files()}, ended.stderr[-300:] + ended.stdout[-300:]


def near(one, other):
    return abs(one - other) <= max(2, 0.2 * max(one, other))


def blocks_of(size, block):
    """How many blocks, and the rest."""
    number = lambda text: int(text[:-1]) << {"k": 10, "m": 20}[text[-1].lower()] if text[-1].lower() in "km" else int(text)
    return divmod(number(size), number(block))


def is_explained(job):
    """Whether fio would verify what it laid out without headers, read ahead with O_DIRECT into a buffer that is not aligned, read files that it
    did not lay out, write to a mapping of an empty one, have neither a map nor random numbers, or end early (docs/formats/fio.md); whether
    sysbench would come to places that are not whole blocks (docs/formats/sysbench-fileio.md)."""
    if tool == "sysbench":
        blocks, rest = blocks_of(job["file-total-size"], job.get("file-block-size", "16K"))
        aligned = not rest and blocks % int(job["file-num"]) == 0
        return not aligned and ("validate" in job or job.get("file-extra-flags") == "direct")
    if tool != "fio":
        return False
    reads = job.get("rw", "read") != "write" and not job.get("rw", "").startswith(("randwrite", "write"))
    empty = "create_on_open" in job and (reads or job.get("ioengine") == "mmap")
    one_size_unused = "," in job.get("bs", "") and "rw" not in job["rw"]
    damaged = one_size_unused or reads and "verify" in job or "direct" in job and "pre_read" in job or empty or "ba" in job and "random_generator" in job
    rest = bool(blocks_of(job.get("filesize", job["size"]), "4k")[1])
    drawn = ":" in job["rw"] or any(name in job for name in ("random_distribution", "percentage_random", "fsync", "fdatasync"))
    part = rest + ("ba" in job) + drawn > 1
    return damaged or part or "do_verify" in job and "io_size" in job and "loops" not in job


POOL, ALWAYS, outcome = {
    "fio": (FIO, ["rw", "size"], outcome_of_fio),
    "sysbench": (SYSBENCH, ["file-test-mode", "file-num", "file-total-size", "events"], outcome_of_sysbench),
    "mdtest": (MDTEST, ["n"], outcome_of_ranks),
    "ior": (IOR, [], outcome_of_ranks),
}[tool]


def differs(job):
    if is_explained(job):
        return False, ""
    ours, said = outcome([fstone, tool], job)
    if ours is None:
        return None, said
    theirs, their_words = outcome([original], job)
    if "timeout" not in (ours, theirs) and "files" in ours and "files" in theirs:
        # The extents of one may need a block of metadata more.
        for name, (size, blocks) in ours["files"].items():
            there = theirs["files"].get(name)
            if there and abs(there[1] - blocks) <= 16:
                # Stamped files are whole sectors.
                stamped = "verify" in job and -(-there[0] // 512) * 512 == size
                theirs["files"][name] = (size if stamped else there[0], blocks)
        # How many operations a mix of two positions makes follows from the draw.
        for our, their in zip(ours.get("jobs", []), theirs.get("jobs", [])):
            if job.get("rw") == "rw" and "drawn" not in our[1] and near(our[1][0][0], their[1][0][0]):
                our[1][:] = their[1]
    if ours == theirs or (ours != "timeout" and ours["failed"] and theirs != "timeout" and theirs["failed"]):
        return False, ""
    if "calls" in ours and "calls" in theirs and tool in ("mdtest", "ior"):
        for our, their in zip(sum(ours["calls"], []), sum(theirs["calls"], [])):
            same = next((at for at, pair in enumerate(zip(our, their)) if pair[0] != pair[1]), min(len(our), len(their)))
            for side in (our, their):
                side[:] = [f"{same} alike", *side[same : same + 3], f"{len(side)} in all"]
    return True, f"{tool} {theirs}\nfstone {ours}\n{their_words[:200]}{said[:200]}"


def shortest(job):
    for name in list(job):
        less = {other: value for other, value in job.items() if other != name}
        if all(name in less for name in ALWAYS) and differs(less)[0]:
            return shortest(less)
    return job


random.seed(seed)
os.chdir(place)
refused, different, same = collections.Counter(), {}, 0
for number in range(count):
    names = random.sample([name for name in POOL if name not in ALWAYS], random.choice([1, 2, 2, 3]))
    job = {name: random.choice(POOL[name]) for name in [*ALWAYS, *names]}
    if "verify" in job and "read" in job.get("rw", ""):
        job["rw"] = "write"
    found, said = differs(job)
    if found is None:
        refused[next((text.split("]: ")[-1] for text in said.splitlines() if "error" in text), said[:80])] += 1
    elif found:
        short = shortest(job)
        line = " ".join(f"{name}={value}" for name, value in sorted(short.items()))
        if line not in different:
            different[line] = said if short == job else differs(short)[1]
            print(f"- `{line}`\n{different[line]}", flush=True)
    else:
        same += 1
print(f"\n{count} jobs with seed {seed}: {same} equal, {sum(refused.values())} refused, {len(different)} shortest jobs that differ")
for why, times in refused.most_common():
    print(f"- refused {times} times: {why}")
sys.exit(bool(different))
