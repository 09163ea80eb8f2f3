//! Options, settings and facts of filesystems: numbers and known words are shown, everything else is not.

use super::texts::PART_LEFT_OUT;

/// Parts of names and values of mkfs options, mount options, features, settings of queues and kernels, tools and drive models.
const KNOWN: &str = "
    64bit 9p acdirmax acdirmin acl acpi acregmax acregmin active adaptive add affinity agcount ageing aggregate aging agnum agsize
    ahead aio algorithm align alignment all alloc allocation allocator allocsize allow allowed always amd anticipatory append as
    ascii aspm async at atime atomic attr attr2 auto autoclear autodefrag average aware back background backing backref balancing
    bandwidth barrier barriers bash batch bcachefs bfq bg big bigalloc bigtime biosize bit bitmap bits blake2 blake2b blks block
    blocks blocksize boost boundary btrfs buffer bypass byte bytes bzip2 cache call casefold cat centisecs ceph cfq channel channels
    charge check checkpoint checksum chunk chunksize cifs clean clock cluster clusters cmake codepage command commit comp compat
    compress compression concurrency conservative continue control conv copy core count cowextsize cp cpio cppc cpu cpufreq cpus crc
    crc32c crtime cstate csum cycle da data datacow datasum dax daxinherit db dd deadline debug debugreiserfs default defer delalloc
    delay dentry depth device devices dies dio dir directory dirsync dirty dirtytime disabled discard disk dma dmask dosfstools
    drive driver du dummy dump dumpe2fs dup duplex duplicates durable e2fsck e2fsprogs ea elevator encrypt encryption entries erase
    erofs err error errors exclude exfat exfatprogs expire exports ext ext2 ext3 ext4 extended extension extent extents extra
    extsize extszinherit f2fs fast fat fatal fault fc features fifo file filestreams filesystem filetype find finobt fio flags flex
    flexible flush fmask force format found fragment fragments frequency front fs fsck fsoffset fsync ftype fua full function fuse
    fuseblk gc gcc gid git gluster governor granularity grep group grpjquota grpquota guest gzip hard has hash head heads holes host
    hpet ht huge hugepage hugepages hugepagesz hw id idle ignore incompat index info init injection inline inner inobtcount inode
    inode32 inode64 inodes installed instructions integrity intel interface internal invariant io iocharset ioprio iosched iostats
    iref is isize iso8859 isolcpus itable jfs jfsutils journal journalled jqfmt kb keep kernel khz kvm kyber laptop large largeio
    lat latency lazy lazysbcount lazytime leafsize level lfs limit load local lock log logbsize logbufs logical logs lookup lost low
    ls lz4 lz4hc lzma lzo madvise make managed mask max maxcpus maximum mb mbr mds meltdown mem memory merge merges meta metadata
    min minimum mitigations mixed mkdir mke2fs mkfs mksquashfs mmaptags mmp mod mode modelled mount mq multithreading names namlen
    nconnect never nfs nilfs nilfs2 nlink no noac noacl noalign noappend noatime noauto noautodefrag nobarrier nobh nocbs nocompress
    nodatacow nodatasum node nodelalloc nodesize nodev nodiratime nodiscard noexec nogc nohz nolargeio nolock nomballoc nomerges
    none noop nopad noquota normal nosmt nossd nosuid not nr nrext64 num numa number nvme of off offset on ondemand one open optimal
    optimize options order ordered orphan other outer over overcommit overlay pack pag page pages panic parent partscan passive
    passthrough pcie per performance physical pm poll pool posix powersave preempt preserve pressure prio prjjquota prjquota
    processor processors program progs project projid32bit projinherit proto provisioning pstate pti python3 queue queued quiet
    quota raid raid0 raid1 raid10 raid1c3 raid5 raid6 ramfs random rate ratio rcu rdma read readahead recovery reflink reiser4
    reiserfs reiserfsck relatime remount repair replay requests rescue reserve reserved resgid resize resuid retbleed retrans
    rgcount rgsize rm rmapbt ro root rotational rpm rq rsize rsync rtinherit runtime rw same sb scan scheduler schedutil scsi sec
    seconds section sections sector sectors sectorsize sectsize seed seek segment segments server settle sha256 shortname shrink
    simultaneous single size sizelimit skinny slice smt soft sort space sparse spec spectre spinodes squashfs squota srbds ssd
    stable start starved store strategy stream streams strict strictatime stride stripe su sunit super super2 superblock svn sw
    swalloc swap swappiness swidth switch sync sys system tailends tainted tar tcp thread threadirqs threads throttle through time
    timeo timeouts tmpfs to today tools total touch track transaction transparent tree tsc tsx tune tune2fs turbo type ubifs udp uid
    umask umount uninit unit unmap unsquashfs unzip uring usec user userspace usrjquota usrquota utf utf8 utime v1 v2 valid variant
    verity vers version vfat vfs virt virtiofs vm voluntary want wbt whint width within workers write writeback writes wsize wsync
    xattr xattrs xfs xfsprogs xxhash xxhash64 xz zeroes zfs zip zlib zone zoned zones zstd
";

const UNITS: [&str; 30] = [
    "b", "k", "m", "g", "t", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "s", "ms", "us", "µs", "ns", "min",
    "h", "bit", "x", "hz", "khz", "mhz", "ghz", "kb/s", "mb/s", "mib/s", "gib/s",
];

/// The text with each option that is not known replaced, or its value where only that is not.
pub(super) fn known(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for chunk in text.split_inclusive(is_between) {
        let option = chunk.trim_end_matches(is_between);
        shown.push_str(&judged(option));
        shown.push_str(&chunk[option.len()..]);
    }
    shown
}

/// Only the options of a kernel that are known. What follows "--" is for the first process: anything.
pub(super) fn only_known(text: &str) -> String {
    let options = text.split(is_between).take_while(|option| *option != "--").map(judged);
    options.filter(|option| !option.is_empty() && !option.contains(PART_LEFT_OUT)).collect::<Vec<_>>().join(" ")
}

const fn is_between(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ',')
}

fn judged(option: &str) -> String {
    let core = option.trim_matches(|c: char| "-^+()[]\"'#:;.".contains(c));
    if core.is_empty() || is_number(core) || is_word(core) {
        return option.to_owned();
    }
    match core.split_once('=') {
        Some((name, value)) if is_word(name) && (value.is_empty() || is_number(value) || is_word(value)) => {
            option.to_owned()
        }
        Some((name, _)) if is_word(name) => format!("{name}={PART_LEFT_OUT}"),
        _ => PART_LEFT_OUT.to_string(),
    }
}

/// A number with at most one point and a unit, in hexadecimal, or a range or ratio of numbers.
fn is_number(text: &str) -> bool {
    let one = |text: &str| {
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        if let Some(hex) = text.strip_prefix("0x") {
            return (1..=16).contains(&hex.len()) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        }
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.to_lowercase();
        number.starts_with(|c: char| c.is_ascii_digit())
            && number.len() <= 20
            && number.matches('.').count() <= 1
            && (unit.is_empty() || unit == "%" || UNITS.contains(&unit.as_str()))
    };
    one(text) || text.split_once(['-', ':', '/']).is_some_and(|(low, high)| one(low) && one(high))
}

/// Known words, joined as in `data_err` and `mq-deadline`. A single letter reveals nothing.
fn is_word(text: &str) -> bool {
    let is_part = |part: &str| {
        part.len() <= 1 || part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() <= 4 || is_listed(part)
    };
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.split(['-', '_', '.', '/', ':']).all(is_part)
}

fn is_listed(part: &str) -> bool {
    KNOWN.split_ascii_whitespace().chain(UNITS).any(|known| known.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_filesystems_and_settings_are_known() {
        for text in [
            "-I 256 -O uninit_bg,^has_journal,flex_bg -G 64 -E lazy_itable_init=0,stride=16",
            "-m crc=1,finobt=1 -l size=64m,lazy-count=1",
            "rw,noatime,data=ordered,errors=remount-ro,commit=5,compress=zstd:3",
            "[none] mq-deadline kyber bfq",
            "vm.dirty_background_ratio",
            "iosched/fifo_batch",
            "swap, bytes",
            "powersave (4 CPUs), performance (12 CPUs)",
            "rpm=7200 outer-rate=270 MB/s write-cache=256 MiB full-seek=16 ms",
            "0 (crc32c)",
            "mkfs.ext4",
            "xfs_repair",
            "0-3,8",
        ] {
            assert_eq!(known(text), text);
        }
    }

    #[test]
    fn what_is_not_known_goes() {
        for (text, shown) in [
            ("-L alice -U 4f2c1a7e-0b1d-4c55-9d3e-0123456789ab", "-L … -U …"),
            ("rw,addr=192.168.7.12,subvol=/@home,rsize=4096", "rw,…,…,rsize=4096"),
            ("errors=alice", "errors=…"),
            ("52:54:00:12:34:56 10.0.0.7", "… …"),
            ("/home/alice data/alice", "… …"),
            ("alice@filer:/srv", "…"),
        ] {
            assert_eq!(known(text), shown);
        }
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=4f2c1a7e ro mitigations=off systemd.hostname=alice nohz_full=2-7 -- 5001 quiet";
        assert_eq!(only_known(line), "ro mitigations=off nohz_full=2-7");
    }
}
