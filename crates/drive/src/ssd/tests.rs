use crate::curves::{self, Random};
use crate::testing::{at, with};
use crate::{Drive, Kind, Model, Request, SECTOR_BYTES};

const SIZE: u64 = 256 << 30;

fn ssds() -> Vec<Model> {
    let models = Model::built_in().map(|name| Model::find(name).expect("built in"));
    models.filter(|model| model.kind() == Kind::Ssd).collect()
}

/// With a controller that takes no time of its own.
fn unhurried() -> Vec<Model> {
    ssds().iter().map(|model| with(model, &[("controller-time", "\"0 ms\"")])).collect()
}

/// So many write at a time.
fn writing(model: &Model) -> f64 {
    model.number("dies").min(model.number("writing-dies"))
}

#[test]
fn a_read_alone_takes_the_sum_of_its_parts() {
    for model in ssds() {
        let (_, mean) = curves::random_reads(&model, SIZE, 1, 1_000);
        let moved = 4096e9 / model.number("channel-rate") + 4096e9 / model.number("interface-rate");
        let expected = model.number("command-time") + model.number("read-time") + moved;
        assert!((mean / expected - 1.0).abs() < 0.01, "{}: {mean}, {expected}", model.name());
    }
}

/// A channel is free for others until a die that is busy has something to move.
#[test]
fn a_read_of_an_idle_die_does_not_wait_for_a_busy_one() {
    for model in unhurried() {
        let model = with(&model, &[("queue-depth", "4096")]);
        let (page, dies) = (model.whole("page") / SECTOR_BYTES, model.whole("dies"));
        let channels = model.whole("channels");
        if dies <= channels {
            continue;
        }
        let mut drive = Drive::new(&model, SIZE);
        let read =
            |number: u64, die: u64| Request::Read((number * dies + die) * page..(number * dies + die) * page + 8);
        for number in 0..100 {
            drive.submit(0, number, &read(number, 0));
        }
        // Of the same channel.
        drive.submit(0, 1000, &read(0, channels));
        let moved = 4096e9 / model.number("channel-rate") + 4096e9 / model.number("interface-rate");
        // The first of the busy die may be there at the same time.
        let most = model.number("command-time") + model.number("read-time") + moved * 2.0;
        let done = at(&mut drive, 1000);
        assert!((done as f64) < most, "{}: {done}, {most}", model.name());
    }
}

fn small(page: u64, model: &Model) -> Request {
    let at = page * model.whole("page") / SECTOR_BYTES;
    Request::Read(at..at + 8)
}

/// Command, channel and interface of 4 KiB, in nanoseconds.
fn parts(model: &Model) -> [f64; 3] {
    [model.number("command-time"), 4096e9 / model.number("channel-rate"), 4096e9 / model.number("interface-rate")]
}

/// All dies of a channel sense at once, and then the channel moves one page after the other.
#[test]
fn a_burst_of_reads_waits_for_its_channel_and_for_the_interface() {
    for model in unhurried() {
        let [command, channel, interface] = parts(&model);
        let (dies, channels) = (model.whole("dies"), model.whole("channels"));
        let mut drive = Drive::new(&model, SIZE);
        let of_a_channel: Vec<u64> = (0..dies).filter(|die| die % channels == 0).collect();
        for die in &of_a_channel {
            drive.submit(0, *die, &small(*die, &model));
        }
        let mut moved = command + model.number("read-time");
        let mut expected = 0.0f64;
        for _ in &of_a_channel {
            moved += channel;
            expected = expected.max(moved) + interface;
        }
        let took = at(&mut drive, of_a_channel[of_a_channel.len() - 1]) as f64;
        assert!((took - expected).abs() < dies as f64, "{}: {took}, {expected}", model.name());

        // All dies at once: the interface is the slowest part, and begins when the first is there.
        let mut drive = Drive::new(&model, SIZE);
        for die in 0..dies {
            drive.submit(0, die, &small(die, &model));
        }
        let expected = command + model.number("read-time") + channel + dies as f64 * interface;
        let mut last = 0;
        while let Some(event) = drive.next_event() {
            while let Some((at_ns, _)) = drive.completed(event) {
                last = at_ns;
            }
        }
        assert!((last as f64 - expected).abs() < dies as f64, "{}: {last}, {expected}", model.name());
    }
}

/// 4 KiB after 4 KiB of a page: it is sensed once, and again after another page of its die or after a write to it.
#[test]
fn a_page_is_sensed_once() {
    for model in ssds() {
        let [command, channel, interface] = parts(&model);
        let (page, dies) = (model.whole("page") / SECTOR_BYTES, model.whole("dies"));
        let mut drive = Drive::new(&model, SIZE);
        let (mut now, mut id) = (0, 0);
        let mut took = |request: Request| {
            drive.submit(now, id, &request);
            let begun = std::mem::replace(&mut now, at(&mut drive, id));
            id += 1;
            (now - begun) as f64
        };
        let held = command + channel + interface;
        let sensed = held + model.number("read-time");
        let is = |took: f64, expected: f64| (took - expected).abs() < 4.0;
        for block in 0..page / 8 {
            let expected = if block == 0 { sensed } else { held };
            let took = took(Request::Read(block * 8..block * 8 + 8));
            assert!(is(took, expected), "{}, {block}: {took}, {expected}", model.name());
        }
        let elsewhere = dies * page;
        assert!(is(took(Request::Read(elsewhere..elsewhere + 8)), sensed), "{}", model.name());
        assert!(is(took(Request::Read(0..8)), sensed), "{}", model.name());
        took(Request::Write(0..8));
        assert!(is(took(Request::Read(8..16)), sensed), "{}", model.name());
    }
}

#[test]
fn what_is_in_the_write_buffer_is_read_from_there() {
    for model in ssds() {
        let [command, channel, interface] = parts(&model);
        let mut drive = Drive::new(&model, SIZE);
        let page = model.whole("page") / SECTOR_BYTES;
        drive.submit(0, 1, &Request::Write(80_000..80_008));
        let written = at(&mut drive, 1);
        drive.submit(written, 2, &Request::Read(80_000..80_008));
        let read = at(&mut drive, 2);
        let expected = command + interface;
        assert!(((read - written) as f64 - expected).abs() < 2.0, "{}: {read}, {expected}", model.name());
        // The rest of a page is written, and the page programmed.
        drive.submit(read, 3, &Request::Write(160_000..160_000 + page));
        let full = at(&mut drive, 3);
        let programmed = full + 2 * model.whole("program-time");
        drive.submit(programmed, 4, &Request::Read(80_000..80_008));
        let took = (at(&mut drive, 4) - programmed) as f64;
        let expected = command + model.number("read-time") + channel + interface;
        assert!((took - expected).abs() < 4.0, "{}: {took}, {expected}", model.name());
    }
}

/// However many at a time, the slowest part sets the pace: dies, channels, or the interface.
#[test]
fn many_reads_reach_the_ceiling_and_not_more() {
    for model in ssds() {
        let model = with(&model, &[("queue-depth", "4096")]);
        let (rate, _) = curves::random_reads(&model, SIZE, 4096, 200_000);
        let dies = model.number("dies") * 1e9 / model.number("read-time");
        let channels = model.number("channels") * model.number("channel-rate") / 4096.0;
        let ceiling = dies.min(channels).min(model.number("interface-rate") / 4096.0);
        let ceiling = ceiling.min(1e9 / model.number("controller-time"));
        assert!(rate < ceiling * 1.001 && rate > ceiling * 0.8, "{}: {rate}, {ceiling}", model.name());
    }
}

#[test]
fn writes_in_sequence_and_at_random_in_the_steady_state() {
    for model in ssds() {
        let page = model.number("page");
        let program = model.number("program-time") + model.number("erase-time") / model.number("pages-per-block");
        let by_flash = writing(&model) * page * 1e9 / program;
        let channels = model.number("channels") * model.number("channel-rate");
        let ceiling = by_flash.min(channels).min(model.number("interface-rate"));
        let rate = curves::sequential(&model, SIZE, 0.0, true, 1);
        assert!(rate < ceiling * 1.01 && rate > ceiling * 0.9, "{}: {rate}, {ceiling}", model.name());

        let spare = model.number("over-provisioning");
        let amplification = (1.0 + spare) / (2.0 * spare);
        let each = model.number("program-time")
            + (amplification - 1.0) * (model.number("read-time") + model.number("program-time"))
            + amplification * model.number("erase-time") / model.number("pages-per-block");
        let expected = writing(&model) * page / 4096.0 * 1e9 / each;
        let full = (model.number("write-buffer") / 4096.0) as usize;
        let rate = curves::random_writes(&model, SIZE, 4 * full + 100_000, 100_000);
        let expected = expected.min(model.number("interface-rate") / 4096.0);
        assert!((rate / expected - 1.0).abs() < 0.03, "{}: {rate}, {expected}", model.name());
    }
}

#[test]
fn room_in_the_write_buffer_is_given_in_the_order_of_arrival() {
    for model in ssds() {
        let mut drive = Drive::new(&model, SIZE);
        let full = model.whole("write-buffer") / 4096;
        let mut random = Random(1);
        let mut ends = Vec::new();
        let (mut now, mut next) = (0, 0);
        while ends.len() < 4 * full as usize {
            while next < ends.len() as u64 + 128 {
                let at = random.below(SIZE / 4096) * 8;
                drive.submit(now, next, &Request::Write(at..at + 8));
                next += 1;
            }
            now = drive.next_event().expect("it is busy");
            while let Some((_, id)) = drive.completed(now) {
                ends.push(id);
            }
        }
        assert!(ends.is_sorted(), "{}", model.name());
    }
}

/// Dies that are never idle: a read waits for the rest of one operation, whatever else is booked. Of operations that follow each other that is
/// half the mean of their squares over their mean.
#[test]
fn a_read_beside_random_writes_waits_for_what_is_under_way_only() {
    for model in ssds() {
        let all = model.whole("dies").to_string();
        let model = with(&model, &[("writing-dies", &all)]);
        let [command, channel, interface] = parts(&model);
        let mut drive = Drive::new(&model, SIZE);
        let mut random = Random(1);
        // Whole pages, so that there are fewer writes: each moves as many pages.
        let page = model.whole("page") / SECTOR_BYTES;
        let mut place = |sectors: u64| {
            let at = random.below(SIZE / SECTOR_BYTES / page) * page;
            at..at + sectors
        };
        // Few at a time, or reads wait for the interface, too.
        for id in 1..=4 {
            drive.submit(0, id, &Request::Write(place(page)));
        }
        let (mut begun, mut written, mut sum, mut count, mut longest) = (0, 0, 0, 0, 0);
        let full = 2 * model.whole("write-buffer") / model.whole("page");
        while count < 4_000 {
            let now = drive.next_event().expect("it is busy");
            while let Some((_, id)) = drive.completed(now) {
                if id > 0 {
                    written += 1;
                    drive.submit(now, id, &Request::Write(place(page)));
                } else {
                    (sum, count, longest) = (sum + now - begun, count + 1, longest.max(now - begun));
                }
                if written == full || id == 0 {
                    written += 1;
                    begun = now;
                    drive.submit(now, 0, &Request::Read(place(8)));
                }
            }
        }
        let spare = model.number("over-provisioning");
        let amplification = (1.0 + spare) / (2.0 * spare);
        let erased = amplification / model.number("pages-per-block");
        let times = ["program-time", "read-time", "erase-time"].map(|name| model.number(name));
        let of_a_page: Vec<(f64, f64)> = [amplification, amplification - 1.0, erased].into_iter().zip(times).collect();
        let squares: f64 = of_a_page.iter().map(|(count, time)| count * time * time).sum();
        let busy: f64 = of_a_page.iter().map(|(count, time)| count * time).sum();
        let alone = command + times[1] + channel + interface;
        let expected = alone + squares / busy / 2.0;
        let mean = sum as f64 / f64::from(count);
        assert!((mean / expected - 1.0).abs() < 0.1, "{}: {mean}, {expected}", model.name());
        // And pages on their way to its channel.
        let moved = model.number("page") * 1e9 / model.number("channel-rate");
        assert!((longest as f64) < alone + times[2] + 4.0 * moved, "{}: {longest}", model.name());
    }
}

/// One die writes at a time: what is written after a program that a read was let in front of begins as much later.
#[test]
fn a_program_that_is_put_off_keeps_its_place() {
    for model in unhurried() {
        let calm = [("over-provisioning", "10"), ("pages-per-block", "65536"), ("buffer-is-durable", "0")];
        let model = with(&model, &[calm.as_slice(), &[("writing-dies", "1")]].concat());
        let (page, dies) = (model.whole("page") / SECTOR_BYTES, model.whole("dies"));
        let [command, program, read] = ["command-time", "program-time", "read-time"].map(|name| model.whole(name));
        let mut drive = Drive::new(&model, SIZE);
        drive.submit(0, 1, &Request::Write(0..page));
        let written = at(&mut drive, 1);
        drive.submit(written, 2, &Request::Flush);
        let first = at(&mut drive, 2);
        let mut drive = Drive::new(&model, SIZE);
        drive.submit(0, 1, &Request::Write(0..2 * page));
        at(&mut drive, 1);
        // Another page of the second die, just before that begins to program.
        drive.submit(first - 1 - command, 2, &Request::Read((1 + dies) * page..(1 + dies) * page + 8));
        let now = at(&mut drive, 2);
        drive.submit(now, 3, &Request::Write(2 * page..3 * page));
        let written = at(&mut drive, 3);
        drive.submit(written, 4, &Request::Flush);
        assert_eq!(at(&mut drive, 4), first - 1 + read + 2 * program, "{}", model.name());
    }
}

/// A read of what is in the buffer beside a write: each direction at the whole rate, or one after the other.
#[test]
fn reads_and_writes_share_an_interface_that_has_one_direction() {
    for model in unhurried() {
        let mut drive = Drive::new(&model, SIZE);
        let sectors = (128 << 10) / SECTOR_BYTES;
        drive.submit(0, 1, &Request::Write(0..sectors));
        let written = at(&mut drive, 1);
        drive.submit(written, 2, &Request::Read(0..sectors));
        drive.submit(written, 3, &Request::Write(sectors..2 * sectors));
        let ends = [2, 3].map(|id| (at(&mut drive, id) - written) as f64);
        let (command, moved) = (model.number("command-time"), 131_072e9 / model.number("interface-rate"));
        let one_way = model.number("full-duplex") < 0.5;
        let expected = [command + moved, command + if one_way { 2.0 * moved } else { moved }];
        let near = |end: f64, expected: f64| (end - expected).abs() < 8.0;
        assert!(near(ends[0], expected[0]) && near(ends[1], expected[1]), "{}: {ends:?}, {expected:?}", model.name());
    }
}

/// Flash sets the pace of zeros, and the first of them move nothing: they do not come over the interface.
#[test]
fn zeros_are_programmed_as_fast_as_the_flash_can() {
    for model in ssds() {
        let mut drive = Drive::new(&model, SIZE);
        let piece = (32 << 20) / SECTOR_BYTES;
        let (mut now, count) = (0, 256);
        for id in 0..count {
            drive.submit(now, id, &Request::Zero(id * piece..(id + 1) * piece));
            now = at(&mut drive, id);
        }
        drive.submit(now, count, &Request::Read(0..8));
        let took = at(&mut drive, count) as f64;
        let program = model.number("program-time") + model.number("erase-time") / model.number("pages-per-block");
        let by_flash = writing(&model) * model.number("page") * 1e9 / program;
        let channels = model.number("channels") * model.number("channel-rate");
        let bytes = (count * piece * SECTOR_BYTES) as f64;
        let expected = by_flash.min(channels);
        let rate = bytes * 1e9 / took;
        assert!((rate / expected - 1.0).abs() < 0.02, "{}: {rate}, {expected}", model.name());
    }
}

#[test]
fn a_flush_programs_a_page_and_a_buffer_that_lasts_gets_none() {
    for model in ssds() {
        let mean = curves::durable_writes(&model, SIZE, 1_000);
        let command = model.number("command-time");
        let acknowledged = command + 4096e9 / model.number("interface-rate");
        if model.number("buffer-is-durable") > 0.5 {
            assert!((mean / acknowledged - 1.0).abs() < 0.01, "{}: {mean}", model.name());
        } else {
            let moved = model.number("page") * 1e9 / model.number("channel-rate");
            let expected = acknowledged + command + moved + model.number("program-time");
            assert!((mean / expected - 1.0).abs() < 0.02, "{}: {mean}, {expected}", model.name());
        }
    }
}

/// What fills up a page that a flush has programmed is not moved.
#[test]
fn a_padded_page_moves_what_it_holds() {
    for model in ssds().into_iter().filter(|model| model.number("buffer-is-durable") < 0.5) {
        // Nothing is erased meanwhile.
        let model = with(&model, &[("pages-per-block", "65536")]);
        let mut ssd = super::Ssd::new(&model);
        for number in 0..100 {
            let page = (number * 7919) % 100_000 * ssd.page_sectors;
            ssd.end_of(number * 100_000_000, &Request::Write(page..page + 8));
            ssd.end_of(number * 100_000_000 + 1_000_000, &Request::Flush);
        }
        let first: f64 = (0..ssd.dies.len()).map(|die| 65536.0 * die as f64 / ssd.dies.len() as f64).sum();
        let moved = ssd.programmed.iter().sum::<f64>() - first - 100.0;
        let expected = 100.0 * (ssd.amplification - 1.0) * 4096.0 / model.number("page");
        assert!((moved / expected - 1.0).abs() < 0.01, "{}: {moved}, {expected}", model.name());
    }
}

#[test]
fn a_drive_takes_so_many_commands_at_a_time() {
    for model in ssds() {
        let (depth, dies) = (model.whole("queue-depth"), model.whole("dies"));
        let [command, channel, interface] = parts(&model);
        let each = command + model.number("read-time") + channel + interface;
        // One of each die, so that they wait for nothing else.
        let one = with(&model, &[("queue-depth", "1")]);
        let mut drive = Drive::new(&one, SIZE);
        for die in 0..dies {
            drive.submit(0, die, &small(die, &one));
        }
        for die in 0..dies {
            let (took, expected) = (at(&mut drive, die) as f64, (die + 1) as f64 * each);
            assert!((took - expected).abs() < 3.0 * (die + 1) as f64, "{}, {die}: {took}, {expected}", model.name());
        }
        // More than it takes wait elsewhere, and make no difference to it.
        let rates = [depth, 2 * depth].map(|many| curves::random_reads(&model, SIZE, many as usize, 50_000).0);
        assert!((rates[1] / rates[0] - 1.0).abs() < 0.001, "{}: {rates:?}", model.name());
    }
}

/// ATA: it waits for all before it, and what comes later waits for it. NVMe: it is one of the queue.
#[test]
fn a_flush_has_a_drive_for_itself_unless_it_is_queued() {
    for model in unhurried() {
        let mut drive = Drive::new(&model, SIZE);
        for id in 0..8 {
            drive.submit(0, id, &small(id, &model));
        }
        drive.submit(1_000, 8, &Request::Flush);
        for id in 9..12 {
            drive.submit(2_000, id, &small(id, &model));
        }
        let mut ends = [0; 12];
        while let Some(event) = drive.next_event() {
            while let Some((at_ns, id)) = drive.completed(event) {
                ends[id as usize] = at_ns;
            }
        }
        let (flushed, command) = (ends[8], model.whole("command-time"));
        let queued = model.number("queued-flush") > 0.5;
        let before = if queued { 1_000 } else { *ends[..8].iter().max().expect("eight") };
        assert_eq!(flushed, before + command, "{}", model.name());
        let begun = if queued { 2_000 } else { flushed };
        let least = begun + command + model.whole("read-time");
        assert!(ends[9..].iter().all(|end| (least..least + 50_000).contains(end)), "{}: {ends:?}", model.name());
    }
}

/// As docs/drives.md has them: random reads and writes of 4 KiB a second, streams of reads and writes in MB/s, of drives of the class.
#[test]
fn figures_are_near_those_of_data_sheets() {
    let near = |what: &str, got: f64, sheets: &[f64]| {
        println!("{what}: {got:.0}");
        assert!(sheets.iter().all(|sheet| (got / sheet - 1.0).abs() < 0.15), "{what}: {got}, {sheets:?}");
    };
    let nvme = Model::find("nvme-ssd").expect("built in");
    near("nvme-ssd, random reads", curves::random_reads(&nvme, SIZE, 512, 200_000).0, &[1.45e6, 1.4e6]);
    near("nvme-ssd, random writes", curves::random_writes(&nvme, SIZE, 100_000, 100_000), &[260e3, 250e3]);
    near(
        "nvme-ssd, a stream of reads",
        curves::sequential(&nvme, SIZE, 0.0, false, 8) / 1e6,
        &[6400.0, 6900.0, 6200.0],
    );
    near(
        "nvme-ssd, a stream of writes",
        curves::sequential(&nvme, SIZE, 0.0, true, 8) / 1e6,
        &[3800.0, 4200.0, 4000.0],
    );
    let sata = Model::find("sata-ssd").expect("built in");
    near("sata-ssd, random reads", curves::random_reads(&sata, SIZE, 32, 100_000).0, &[98e3, 95e3]);
    near("sata-ssd, random writes", curves::random_writes(&sata, SIZE, 100_000, 100_000), &[10e3]);
    near("sata-ssd, a stream of reads", curves::sequential(&sata, SIZE, 0.0, false, 8) / 1e6, &[560.0, 560.0]);
    near("sata-ssd, a stream of writes", curves::sequential(&sata, SIZE, 0.0, true, 8) / 1e6, &[530.0, 510.0]);
    let (today, size) = (Model::find("hdd-today").expect("built in"), 18_000_000_000_000);
    near("hdd-today, random writes", curves::random_writes(&today, size, 100_000, 20_000), &[550.0]);
    near(
        "hdd-today, a stream at the outer edge",
        curves::sequential(&today, size, 0.0, false, 8) / 1e6,
        &[270.0, 285.0],
    );
    near("hdd-today, random reads, 16 at a time", curves::random_reads(&today, size, 16, 20_000).0, &[152.0]);
    let old = Model::find("hdd-7200-2008").expect("built in");
    let places: f64 =
        (0..16).map(|place| curves::sequential(&old, 1 << 40, f64::from(place) / 15.0, false, 1) / 16e6).sum();
    near("hdd-7200-2008, mean stream of reads", places, &[85.5]);
    let ide = Model::find("ide-2004").expect("built in");
    near("ide-2004, average seek, microseconds", ide.number("average-seek") / 1e3, &[8_500.0]);
    near("hdd-7200-2008, random read, microseconds", curves::random_reads(&old, 1 << 40, 1, 5_000).1 / 1e3, &[14e3]);
}
