use super::*;
use crate::curves::{self, Random};
use crate::testing::{at, with};
use crate::{Drive, Kind};

fn disks() -> Vec<Model> {
    let models = Model::built_in().map(|name| Model::find(name).expect("built in"));
    models.filter(|model| model.kind() == Kind::Disk).collect()
}

const SIZE: u64 = 1 << 40;

/// The mean seek between two sectors at random: over two cylinders of 400 each, weighted by what their zones hold.
fn mean_seek_ns(model: &Model) -> f64 {
    let zones = model.number("zones");
    let (outer, inner) = (model.number("outer-rate"), model.number("inner-rate"));
    let weight = |x: f64| outer - (outer - inner) * (x * zones).floor() / (zones - 1.0).max(1.0);
    let track = model.number("track-to-track-seek");
    let (root, straight) = model.seek_curve();
    let places: Vec<f64> = (0..400).map(|step| (f64::from(step) + 0.5) / 400.0).collect();
    let (mut sum, mut weights) = (0.0, 0.0);
    for a in &places {
        for b in &places {
            let (both, x) = (weight(*a) * weight(*b), (a - b).abs());
            sum += both * (track + root * x.sqrt() + straight * x);
            weights += both;
        }
    }
    sum / weights
}

#[test]
fn random_reads_take_seek_half_a_turn_and_transfer() {
    for model in disks() {
        let (_, mean) = curves::random_reads(&model, SIZE, 1, 40_000);
        let turn = 60e9 / model.number("rpm");
        let rate = (model.number("outer-rate") + model.number("inner-rate")) / 2.0;
        let expected = model.number("command-time") + mean_seek_ns(&model) + turn / 2.0 + 4096.0 / rate * 1e9;
        assert!((mean / expected - 1.0).abs() < 0.01, "{}: {mean} and {expected}", model.name());
    }
}

#[test]
fn the_seek_curve_keeps_what_was_given() {
    for model in disks() {
        let geometry = Geometry::new(&model, SIZE);
        let (first, last) = (0, SIZE / SECTOR_BYTES - 1);
        let place = |sector| geometry.run(sector, sector + 1, 0, u64::MAX).2;
        let full = geometry.seek_ns(place(first), place(last)) as f64;
        assert!((full / model.number("full-seek") - 1.0).abs() < 0.01, "{}: {full}", model.name());
        assert_eq!(geometry.seek_ns(place(first), place(first)), 0);
    }
}

#[test]
fn sequential_rates_are_those_of_the_zones() {
    for model in disks() {
        for writes in [false, true] {
            let rate = |place| curves::sequential(&model, SIZE, place, writes, 1);
            for (place, expected) in [(0.0, "outer-rate"), (1.0, "inner-rate")] {
                let (rate, expected) = (rate(place), model.number(expected));
                assert!(
                    (rate / expected - 1.0).abs() < 0.01,
                    "{} at {place}, writes {writes}: {rate}, {expected}",
                    model.name()
                );
            }
        }
    }
}

#[test]
fn a_queue_makes_random_reads_quicker_where_the_drive_has_one() {
    for model in disks() {
        let rate = |depth| curves::random_reads(&model, SIZE, depth, 8_000).0;
        // Of two, one is with the heads: there is nothing to choose from.
        let rates = [1, 4, 8, 16, 32].map(rate);
        if model.number("queue-depth") < 2.0 {
            assert!((rates[4] / rates[0] - 1.0).abs() < 0.02, "{}: {rates:?}", model.name());
        } else {
            assert!(rates.windows(2).all(|pair| pair[1] > pair[0] * 1.03), "{}: {rates:?}", model.name());
            assert!((1.6..4.0).contains(&(rates[4] / rates[0])), "{}: {rates:?}", model.name());
        }
    }
}

/// With one write on the way a flush waits for it: a seek with its settling, half a turn, the transfer. The write itself takes
/// command and interface.
#[test]
fn a_flush_takes_what_the_write_before_it_takes() {
    for model in disks() {
        let mean = curves::durable_writes(&model, SIZE, 20_000);
        let turn = 60e9 / model.number("rpm");
        let rate = (model.number("outer-rate") + model.number("inner-rate")) / 2.0;
        let acknowledged = model.number("command-time") + 4096.0 / model.number("interface-rate") * 1e9;
        // The heads set out when the data is there.
        let written = mean_seek_ns(&model) + model.number("write-settle") + turn / 2.0 + 4096.0 / rate * 1e9;
        let expected = acknowledged + written;
        assert!((mean / expected - 1.0).abs() < 0.01, "{}: {mean}, {expected}", model.name());
    }
}

#[test]
fn a_flush_takes_a_command_at_least() {
    for model in disks() {
        let far = SIZE / SECTOR_BYTES / 2;
        let flushed_at = |flush_ns: u64| {
            let mut drive = Drive::new(&model, SIZE);
            drive.submit(0, 1, &Request::Write(far..far + 8));
            at(&mut drive, 1);
            drive.submit(flush_ns, 2, &Request::Flush);
            at(&mut drive, 2)
        };
        let written = flushed_at(1_000_000);
        let command = model.whole("command-time");
        for left in [1, command / 2, command] {
            assert_eq!(flushed_at(written - left), written - left + command, "{}", model.name());
        }
        assert_eq!(flushed_at(written - command - 1), written, "{}", model.name());
        assert_eq!(flushed_at(written + 1), written + 1 + command, "{}", model.name());
    }
}

/// Whatever the size of the requests: also when one ends where a track does.
#[test]
fn a_stream_of_reads_is_as_fast_as_its_zone() {
    for model in disks() {
        let rate = model.number("outer-rate");
        for (step, think_ns) in
            [8, 32, 64, 128, 256, 512, 1024, 2048].into_iter().flat_map(|step| [(step, 0), (step, 100_000)])
        {
            let mut drive = Drive::new(&model, SIZE);
            let (mut now, mut begun, mut read) = (0, 0, 0);
            for id in 0..(80 << 20) / (step * SECTOR_BYTES) {
                drive.submit(now, id, &Request::Read(id * step..(id + 1) * step));
                now = at(&mut drive, id) + think_ns;
                // From where the read cache is as full as it will be.
                if (id + 1) * step * SECTOR_BYTES <= 16 << 20 {
                    begun = now;
                } else {
                    read += step * SECTOR_BYTES;
                }
            }
            let got = read as f64 * 1e9 / (now - begun) as f64;
            // With command after command, while the heads read ahead: the slower of the two.
            let bytes = (step * SECTOR_BYTES) as f64;
            let each = model.number("command-time") + think_ns as f64 + bytes * 1e9 / model.number("interface-rate");
            let host = bytes * 1e9 / each;
            // Heads that are far enough ahead stop, and wait for their place to come round. Where the host has all they read before that,
            // it waits, too.
            let (ahead, turn) = (model.number("segment-size") - bytes, 60.0 / model.number("rpm"));
            let gained = ahead / (rate - host);
            let starves = host < rate && ahead > 0.0 && ahead / host < turn;
            let least = if starves { (ahead + host * gained) / (gained + turn) } else { rate.min(host) };
            let most = if starves { least * 1.03 } else { rate * 1.01 };
            assert!(
                got < most && got > least * 0.97,
                "{}, {step} sectors, {think_ns}: {got}, {rate}, {least}",
                model.name()
            );
        }
    }
}

/// It has stopped at the end of a track: the next one comes by within a turn, and is not waited for twice.
#[test]
fn reading_ahead_goes_on_over_the_end_of_a_track() {
    let model = Model::find("ide-2004").expect("built in");
    let geometry = Geometry::new(&model, SIZE);
    let place = |sector| geometry.run(sector, sector + 1, 0, u64::MAX).2;
    let track = (1..).find(|sector| place(*sector) != place(0)).expect("there is another track");
    let ahead = model.whole("segment-size") / SECTOR_BYTES / 2;
    let turn = (60e9 / model.number("rpm")).round() as u64;
    let mut drive = Drive::new(&model, SIZE);
    drive.submit(0, 1, &Request::Read(0..track - ahead));
    let stopped = at(&mut drive, 1) + 2 * turn;
    drive.submit(stopped, 2, &Request::Read(track - ahead..track - ahead + 8));
    let taken = at(&mut drive, 2);
    let there = taken + model.whole("head-switch") + turn + 8 * turn / track + 1;
    drive.submit(there, 3, &Request::Read(track..track + 8));
    let took = (at(&mut drive, 3) - there) as f64;
    let expected = model.number("command-time") + 4096e9 / model.number("interface-rate");
    assert!((took - expected).abs() < 2.0, "{took}, {expected}");
}

fn drive() -> (Drive, Model) {
    let model = Model::find("hdd-7200-2008").expect("built in");
    (Drive::new(&model, SIZE), model)
}

#[test]
fn a_flush_waits_for_what_was_acknowledged_and_for_no_later_write() {
    let (mut drive, _) = drive();
    let far = SIZE / SECTOR_BYTES / 2;
    for id in 0..100 {
        drive.submit(id * 1_000, id, &Request::Write(far + id * 100_000..far + id * 100_000 + 8));
    }
    drive.submit(200_000, 100, &Request::Flush);
    let flushed = at(&mut drive, 100);
    // A hundred times half a turn at least.
    assert!(flushed > 100 * 2_000_000, "{flushed}");
    drive.submit(flushed, 101, &Request::Flush);
    assert!(at(&mut drive, 101) < flushed + 1_000_000);
}

#[test]
fn what_was_written_is_read_from_the_cache_and_what_was_read_again_too() {
    let (mut drive, model) = drive();
    let far = SIZE / SECTOR_BYTES / 2;
    drive.submit(0, 1, &Request::Write(far..far + 8));
    drive.submit(0, 2, &Request::Write(far + 1000..far + 1008));
    drive.submit(1_000, 3, &Request::Read(far + 1000..far + 1008));
    assert!(at(&mut drive, 3) < 1_000_000, "from the write cache");
    drive.submit(1_000_000_000, 4, &Request::Read(8..16));
    let first = at(&mut drive, 4);
    drive.submit(first + 1_000_000, 5, &Request::Read(8..16));
    assert!(at(&mut drive, 5) < first + 2_000_000);
    // Enough was read ahead meanwhile.
    drive.submit(first + 2_000_000, 6, &Request::Read(16..24));
    assert!(at(&mut drive, 6) < first + 3_000_000);
    // A full cache takes a write when another has left it.
    let full = model.whole("write-cache") / SECTOR_BYTES / 2_000;
    let begun = 5_000_000_000;
    for id in 0..full + 2 {
        drive.submit(begun, 100 + id, &Request::Write(id * 4_000_000..id * 4_000_000 + 2_000));
    }
    let at_interface = (full as f64 * 2_000.0 * 512.0 / model.number("interface-rate") * 1e9) as u64;
    assert!(at(&mut drive, 100 + full + 1) > begun + at_interface);
}

/// The heads are at it, or it is still in the cache, or the one for a part and the other for the rest.
#[test]
fn what_is_being_written_is_read_from_the_cache() {
    for model in disks() {
        let far = SIZE / SECTOR_BYTES / 2;
        for (written, read) in [(8, 8), (4096, 8), (4096, 4096)] {
            let mut drive = Drive::new(&model, SIZE);
            drive.submit(0, 1, &Request::Write(far..far + written));
            let acknowledged = at(&mut drive, 1);
            drive.submit(acknowledged, 2, &Request::Read(far + written - read..far + written));
            let took = (at(&mut drive, 2) - acknowledged) as f64;
            let moved = (read * SECTOR_BYTES) as f64 * 1e9 / model.number("interface-rate");
            let expected = model.number("command-time") + moved;
            assert!((took - expected).abs() < 2.0, "{}, {read} of {written}: {took}, {expected}", model.name());
        }
    }
}

#[test]
fn nothing_waits_for_ever() {
    let (mut drive, _) = drive();
    let patience = 500_000_000;
    let far = SIZE / SECTOR_BYTES - 8;
    drive.submit(0, 0, &Request::Read(0..8));
    drive.submit(0, 1, &Request::Read(far..far + 8));
    let (mut now, mut next) = (0, 2);
    loop {
        now = drive.next_event().expect("two requests wait").max(now);
        let mut seen = false;
        while let Some((_, id)) = drive.completed(now) {
            if id == 1 {
                assert!(now < patience + 100_000_000, "{now}");
                return;
            }
            seen = true;
        }
        // Always something nearer.
        if seen {
            for _ in 0..2 {
                drive.submit(now, next, &Request::Read(next * 64 % 10_000..next * 64 % 10_000 + 8));
                next += 1;
            }
        }
    }
}

/// A stream of writes keeps the heads busy, and grows in the cache where it is written out.
#[test]
fn a_flush_does_not_wait_for_later_writes() {
    let (mut drive, model) = drive();
    let far = SIZE / SECTOR_BYTES - 8;
    drive.submit(0, 0, &Request::Write(far..far + 8));
    let (mut now, mut next, mut flush_at) = (0, 1, None);
    let most = model.number("write-cache") / 40e6 * 1e9 + 1e9;
    loop {
        // As much as the cache takes, and more.
        if next < 100_000 {
            drive.submit(now, next, &Request::Write(next * 512..next * 512 + 512));
            next += 1;
        }
        if next == 200 {
            drive.submit(now, u64::MAX, &Request::Flush);
            flush_at = Some(now);
        }
        if next % 4 == 0 {
            now = drive.next_event().expect("it is busy").max(now);
            while let Some((_, id)) = drive.completed(now) {
                if id == u64::MAX {
                    let waited = now - flush_at.expect("it was sent");
                    assert!((waited as f64) < most, "{waited}");
                    return;
                }
            }
        }
        assert!(next < 100_000, "the flush is never done");
    }
}

/// What a stream took is longer than the drive's cache and no longer in it.
#[test]
fn a_stream_leaves_no_more_in_the_cache_than_it_holds() {
    for model in disks() {
        let mut drive = Drive::new(&model, SIZE);
        let blocks = 4096;
        let mut now = 0;
        for block in 0..blocks {
            drive.submit(now, block, &Request::Read(block * 1024..(block + 1) * 1024));
            now = at(&mut drive, block);
        }
        let again = now;
        for block in 0..100 {
            // No regular distance: one could fall in with the turns.
            let far = block * block * 7_919 % (blocks / 2 * 128) * 8;
            drive.submit(now, blocks + block, &Request::Read(far..far + 8));
            now = at(&mut drive, blocks + block);
        }
        // Half a turn each, and a seek before it.
        let turn = 60e9 / model.number("rpm");
        assert!((now - again) as f64 > 100.0 * turn / 2.0, "{}: {} ns", model.name(), now - again);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Actor {
    RandomReader,
    NearReader,
    StreamReader,
    RandomWriter,
    StreamWriter,
    Syncer,
}

/// The longest time that a request of each took or had waited at the end; of a syncer the flush. And how many each had done.
fn mix(model: &Model, actors: &[Actor], until_ns: u64) -> Vec<(u64, u64)> {
    let mut drive = Drive::new(model, SIZE);
    let sectors = SIZE / SECTOR_BYTES;
    let mut random = Random(1);
    let mut next = |index: usize, count: u64| {
        let far = random.below(sectors / 8 - 1) * 8;
        match actors[index] {
            Actor::RandomReader => Request::Read(far..far + 8),
            Actor::NearReader => Request::Read(far % 40_000..far % 40_000 + 8),
            Actor::StreamReader => Request::Read(count * 256..count * 256 + 256),
            Actor::RandomWriter => Request::Write(far..far + 8),
            Actor::StreamWriter => Request::Write(sectors / 2 + count * 1024..sectors / 2 + count * 1024 + 1024),
            Actor::Syncer if count % 2 == 1 => Request::Flush,
            Actor::Syncer => Request::Write(far..far + 8),
        }
    };
    let mut state = vec![(0, 0); actors.len()];
    let mut begun = vec![0; actors.len()];
    for index in 0..actors.len() {
        drive.submit(0, index as u64, &next(index, 0));
    }
    while let Some(now) = drive.next_event().filter(|event| *event < until_ns) {
        let mut ended = Vec::new();
        while let Some((at_ns, id)) = drive.completed(now) {
            ended.push((at_ns, id as usize));
        }
        for (at_ns, index) in ended {
            let (longest, count): &mut (u64, u64) = &mut state[index];
            *longest = (*longest).max(at_ns - begun[index]);
            *count += 1;
            begun[index] = now;
            drive.submit(now, index as u64, &next(index, *count));
        }
    }
    for ((longest, _), begun) in state.iter_mut().zip(begun) {
        *longest = (*longest).max(until_ns - begun);
    }
    state
}

fn longest(actors: &[Actor], of: Actor, got: &[(u64, u64)]) -> u64 {
    actors.iter().zip(got).filter(|(actor, _)| **actor == of).map(|(_, (longest, _))| *longest).max().unwrap_or(0)
}

/// Each takes command and interface, and begins when the one before is complete: cached or not.
#[test]
fn a_drive_without_a_queue_takes_one_command_at_a_time() {
    let model = Model::find("ide-2004").expect("built in");
    let each = model.number("command-time") + 4096e9 / model.number("interface-rate");
    let far = SIZE / SECTOR_BYTES / 2;
    let mut drive = Drive::new(&model, SIZE);
    for id in 0..32 {
        drive.submit(0, id, &Request::Write(far + id * 8..far + id * 8 + 8));
    }
    for id in 0..32 {
        let (took, expected) = (at(&mut drive, id) as f64, (id + 1) as f64 * each);
        assert!((took - expected).abs() < 33.0, "{id}: {took}, {expected}");
    }
    // Until the last of them is written.
    let mut now = 20_000_000_000;
    drive.submit(now, 100, &Request::Read(0..8));
    now = at(&mut drive, 100) + 20_000_000_000;
    drive.submit(now, 101, &Request::Read(far..far + 8));
    drive.submit(now + 1_000, 102, &Request::Read(0..8));
    drive.submit(now + 2_000, 103, &Request::Write(8..16));
    drive.submit(now + 3_000, 104, &Request::Flush);
    let read = at(&mut drive, 101);
    assert!(read > now + model.whole("track-to-track-seek"), "{read}");
    let [cached, written, flushed] = [102, 103, 104].map(|id| at(&mut drive, id));
    assert!((cached as f64 - read as f64 - each).abs() < 2.0, "{read} {cached}");
    assert!(((written - cached) as f64 - each).abs() < 2.0, "{cached} {written}");
    assert!(flushed >= written + model.whole("command-time"), "{written} {flushed}");
}

/// One that reads and one that writes, each waiting for the other: as many of both, in the order in which they came.
#[test]
fn without_a_queue_all_have_as_many_turns() {
    let model = Model::find("ide-2004").expect("built in");
    let got = mix(&model, &[Actor::RandomReader, Actor::RandomWriter], 20_000_000_000);
    assert!(got[0].1.abs_diff(got[1].1) <= 1 && got[0].1 > 100, "{got:?}");
}

/// ATA: it waits for all before it, and what comes later waits for it. SCSI: it is one of the queue.
#[test]
fn a_flush_has_a_drive_for_itself_unless_it_is_queued() {
    for model in disks() {
        let far = SIZE / SECTOR_BYTES / 2;
        let mut drive = Drive::new(&model, SIZE);
        for id in 0..8 {
            drive.submit(0, id, &Request::Read(far + id * 100_000..far + id * 100_000 + 8));
        }
        drive.submit(1_000, 8, &Request::Flush);
        for id in 9..12 {
            drive.submit(2_000, id, &Request::Read(id * 8..id * 8 + 8));
        }
        let mut ends = [0; 12];
        while let Some(event) = drive.next_event() {
            while let Some((at_ns, id)) = drive.completed(event) {
                ends[id as usize] = at_ns;
            }
        }
        let flushed = ends[8];
        if model.number("queued-flush") > 0.5 {
            assert_eq!(flushed, 1_000 + model.whole("command-time"), "{}", model.name());
        } else {
            let before = *ends[..8].iter().max().expect("eight");
            assert_eq!(flushed, before + model.whole("command-time"), "{}", model.name());
            assert!(
                ends[9..].iter().all(|end| *end >= flushed + model.whole("command-time")),
                "{}: {ends:?}",
                model.name()
            );
        }
    }
}

#[test]
fn nobody_waits_for_ever_in_any_mix() {
    use Actor::{NearReader, RandomReader, RandomWriter, StreamReader, StreamWriter, Syncer};
    let mixes: [&[(Actor, usize)]; 9] = [
        &[(RandomReader, 8), (Syncer, 1)],
        &[(RandomReader, 128), (Syncer, 1)],
        &[(StreamReader, 1), (Syncer, 1)],
        &[(StreamReader, 1), (RandomReader, 1), (RandomWriter, 8)],
        &[(StreamWriter, 1), (RandomReader, 1)],
        &[(StreamWriter, 4), (RandomReader, 8), (StreamReader, 1)],
        &[(RandomWriter, 32), (StreamReader, 1)],
        &[(RandomWriter, 32), (RandomReader, 8)],
        &[(NearReader, 4), (RandomReader, 1), (StreamWriter, 1)],
    ];
    for name in ["hdd-7200-2008", "ide-2004"] {
        let model = Model::find(name).expect("built in");
        for mix_of in mixes {
            let actors: Vec<Actor> = mix_of.iter().flat_map(|(actor, count)| vec![*actor; *count]).collect();
            let got = mix(&model, &actors, 8_000_000_000);
            for (actor, count) in mix_of {
                let waited = longest(&actors, *actor, &got);
                // Without a queue, 128 are served one after the other.
                let most = if *count == 128 { 3_500_000_000 } else { 2_000_000_000 };
                assert!(waited < most, "{name}: {actor:?} of {mix_of:?} waited {waited} ns");
            }
        }
    }
}

/// Of eight readers one is with the heads, and the others were there before.
#[test]
fn a_flush_beside_random_readers_takes_some_requests_time() {
    for model in disks() {
        let actors = [vec![Actor::RandomReader; 8], vec![Actor::Syncer]].concat();
        let got = mix(&model, &actors, 8_000_000_000);
        let positioning = model.number("full-seek") + 60e9 / model.number("rpm");
        let waited = longest(&actors, Actor::Syncer, &got) as f64;
        assert!(waited < 10.0 * positioning, "{}: {waited} ns", model.name());
    }
}

/// A flush of a cache full of writes anywhere takes as long as they do, and reads are not kept from the heads all that time.
#[test]
fn reads_beside_a_long_flush_come_to_their_turn() {
    // Its cache fills during a flush.
    let model = Model::find("scsi-10k-2007").expect("built in");
    let actors = [vec![Actor::RandomWriter; 32], vec![Actor::RandomReader; 8], vec![Actor::Syncer]].concat();
    let got = mix(&model, &actors, 20_000_000_000);
    assert!(longest(&actors, Actor::Syncer, &got) > 2_000_000_000, "no flush was long");
    assert!(got.last().is_some_and(|(_, count)| *count > 1), "no flush ended");
    let waited = longest(&actors, Actor::RandomReader, &got);
    assert!(waited < 3_000_000_000, "{waited}");
}

/// Its data arrives when the heads are past its place: it takes a turn, to the nanosecond.
#[test]
fn a_commit_after_a_flush_waits_for_a_turn() {
    for model in disks() {
        let mut drive = Drive::new(&model, SIZE);
        let turn = (60e9 / model.number("rpm")).round() as u64;
        let mut now = 0;
        let mut ends = Vec::new();
        for step in 0..4u64 {
            drive.submit(now, 2 * step, &Request::Write(step * 8..step * 8 + 8));
            now = at(&mut drive, 2 * step);
            drive.submit(now, 2 * step + 1, &Request::Flush);
            now = at(&mut drive, 2 * step + 1);
            ends.push(now);
        }
        let geometry = Geometry::new(&model, SIZE);
        for step in 1..4u64 {
            let passing = geometry.run(step * 8, step * 8 + 8, 0, u64::MAX).1;
            let took = ends[step as usize] - ends[step as usize - 1];
            assert!(took.abs_diff(turn + passing) <= 2, "{}: {took}, {turn}, {passing}", model.name());
        }
    }
}

/// What is on a disk and its share of the stroke: small disks have few cylinders, and random reads stay on one more often.
#[test]
fn a_small_disk_has_its_whole_stroke_too() {
    for model in disks() {
        for size in [100, 200, 300, 500].map(|mib: u64| mib << 20) {
            let geometry = Geometry::new(&model, size);
            let sectors = size / SECTOR_BYTES;
            let place = |sector| geometry.run(sector, sector + 1, 0, u64::MAX).2;
            let full = geometry.seek_ns(place(0), place(sectors - 1)) as f64;
            assert!((full / model.number("full-seek") - 1.0).abs() < 1e-6, "{} of {size}: {full}", model.name());

            // Over all pairs of tracks, weighted by what of them is on the disk.
            let mut tracks: Vec<(Place, f64)> = Vec::new();
            for block in 0..sectors / 8 {
                let at = place(block * 8);
                match tracks.last_mut().filter(|(last, _)| *last == at) {
                    Some((_, blocks)) => *blocks += 1.0,
                    None => tracks.push((at, 1.0)),
                }
            }
            let mut seeks = 0.0;
            for (from, of_from) in &tracks {
                for (to, of_to) in &tracks {
                    seeks += of_from * of_to * geometry.seek_ns(*from, *to) as f64;
                }
            }
            let blocks: f64 = tracks.iter().map(|(_, blocks)| blocks).sum();
            let turn = 60e9 / model.number("rpm");
            let rate = (model.number("outer-rate") + model.number("inner-rate")) / 2.0;
            let positions = seeks / blocks / blocks + turn / 2.0 + 4096.0 / rate * 1e9;
            let expected = model.number("command-time") + positions;
            // Without a read cache: much of a small disk is in the cache otherwise.
            let (_, mean) = curves::random_reads(&with(&model, &[("segment-size", "\"0 B\"")]), size, 1, 40_000);
            assert!((mean / expected - 1.0).abs() < 0.02, "{} of {size}: {mean}, {expected}", model.name());
        }
    }
}

/// What a read anywhere takes, and what a write out of the cache does, in nanoseconds, without command and interface.
fn positions(model: &Model) -> [f64; 2] {
    let rate = (model.number("outer-rate") + model.number("inner-rate")) / 2.0;
    let read = mean_seek_ns(model) + 30e9 / model.number("rpm") + 4096.0 / rate * 1e9;
    [read, read + model.number("write-settle")]
}

/// With room for one write in the cache there is nothing to choose from: a read anywhere, a write anywhere, and so on.
#[test]
fn a_reader_and_a_writer_without_room_take_turns() {
    const UNTIL_NS: u64 = 200_000_000_000;
    for model in disks() {
        let small = with(&model, &[("write-cache", "\"4 KiB\"")]);
        let got = mix(&small, &[Actor::RandomReader, Actor::RandomWriter], UNTIL_NS);
        let [read, written] = positions(&model);
        // Heads wait for commands where there is one at a time.
        let acknowledged = model.number("command-time") + 4096e9 / model.number("interface-rate");
        let between = if model.number("queue-depth") < 2.0 { acknowledged } else { 0.0 };
        let expected = UNTIL_NS as f64 / (read + written + between);
        for (_, count) in &got {
            assert!((*count as f64 / expected - 1.0).abs() < 0.01, "{}: {got:?}, {expected}", model.name());
        }
    }
}

/// Once a cache of the usual size is full, there are as many writes as reads, and no fewer than without a choice of extents.
#[test]
fn a_writer_does_not_starve_a_reader() {
    const UNTIL_NS: u64 = 30_000_000_000;
    for model in disks() {
        for (readers, writers) in [(1, 1), (8, 1), (1, 8), (8, 8)] {
            let actors = [vec![Actor::RandomReader; readers], vec![Actor::RandomWriter; writers]].concat();
            let got = mix(&model, &actors, UNTIL_NS);
            let of = |range: std::ops::Range<usize>| got[range].iter().map(|(_, count)| *count).sum::<u64>();
            let (reads, writes) = (of(0..readers), of(readers..actors.len()));
            let cached = model.whole("write-cache") / 4096;
            let [read, written] = positions(&model);
            let what = format!("{}, {readers} and {writers}: {reads} reads, {writes} writes", model.name());
            if model.number("queue-depth") < 2.0 {
                // In the order in which they come.
                assert!((reads * writers as u64).abs_diff(writes * readers as u64) < 100, "{what}");
                continue;
            }
            // There are more reads than extents while the cache fills.
            let each = model.number("command-time") + 4096e9 / model.number("interface-rate");
            let filling = cached as f64 * each / read;
            assert!(writes.abs_diff(reads + cached) as f64 <= 100.0 + 3.0 * filling, "{what}");
            assert!(reads as f64 > UNTIL_NS as f64 / (read + written), "{what}");
        }
    }
}

/// To the nanosecond: heads have written as much as it needs, and its last sector comes over the interface.
#[test]
fn a_write_has_room_when_as_much_is_on_the_platters() {
    for model in disks() {
        let model = with(&model, &[("write-cache", "\"1 MiB\"")]);
        let geometry = Geometry::new(&model, SIZE);
        let far = SIZE / SECTOR_BYTES / 2;
        for count in [8, 64, 2048] {
            let mut drive = Drive::new(&model, SIZE);
            drive.submit(0, 1, &Request::Write(far..far + 2048));
            let full = at(&mut drive, 1);
            drive.submit(full, 2, &Request::Write(0..count));
            let begins = geometry.arrival_ns(full, Geometry::START, far, model.whole("write-settle"));
            let room = geometry.run(far, far + count, begins, u64::MAX).1;
            let moved = |count: u64| transfer_ns(count * SECTOR_BYTES, model.number("interface-rate"));
            let expected = (room + moved(1)).max(full + model.whole("command-time") + moved(count));
            assert_eq!(at(&mut drive, 2), expected, "{}, {count} sectors", model.name());
        }
    }
}

/// Whatever the size of the requests: what they wait for is room for them.
#[test]
fn a_stream_of_writes_is_as_fast_as_its_zone() {
    for model in disks() {
        let rate = model.number("outer-rate");
        for (step, depth) in [(128, 1), (512, 1), (2048, 1), (2560, 1), (512, 4), (2560, 4)] {
            let mut drive = Drive::new(&model, SIZE);
            let (cached, measured) = (model.whole("write-cache") / SECTOR_BYTES / step, (128 << 11) / step);
            let (mut now, mut begun) = (0, 0);
            let count = 4 * cached + measured;
            for id in 0..count {
                drive.submit(now, id, &Request::Write(id * step..(id + 1) * step));
                if id + 1 >= depth {
                    now = at(&mut drive, id + 1 - depth);
                }
                if id + 1 == 4 * cached {
                    begun = now;
                }
            }
            let got = (measured * step * SECTOR_BYTES) as f64 * 1e9 / (now - begun) as f64;
            assert!((got / rate - 1.0).abs() < 0.02, "{}, {step} sectors, {depth}: {got}, {rate}", model.name());
        }
    }
}

/// Sectors of the first track.
fn of_a_track(geometry: &Geometry) -> u64 {
    let place = |sector| geometry.run(sector, sector + 1, 0, u64::MAX).2;
    (1..).find(|sector| place(*sector) != place(0)).expect("there is another track")
}

/// Files on one track, read in any order by heads that come from elsewhere. What passes is kept, so one is missed only if it is further on than all
/// before it: the k-th of them once in k times. They take as long as it takes to come to the furthest.
#[test]
fn what_passes_the_heads_is_read_on_arrival() {
    const FILES: u64 = 8;
    const ROUNDS: u64 = 4_000;
    let harmonic: f64 = (1..=FILES).map(|number| 1.0 / number as f64).sum();
    for (model, on_arrival) in disks().into_iter().flat_map(|model| [(model.clone(), false), (model, true)]) {
        let set = if on_arrival { "1" } else { "0" };
        let at_once = [("command-time", "\"0 ms\""), ("interface-rate", "\"1000 GB/s\"")];
        let large = [("buffer", "\"1 GiB\""), ("segment-size", "\"16 MiB\"")];
        let model = with(&model, &[at_once.as_slice(), &large, &[("read-on-arrival", set)]].concat());
        let (geometry, far) = (Geometry::new(&model, SIZE), SIZE / SECTOR_BYTES / 2);
        let track = of_a_track(&geometry);
        let place = |sector| geometry.run(sector, sector + 1, 0, u64::MAX).2;
        let seek = geometry.seek_ns(place(far), place(0));
        let mut random = Random(1);
        let (mut missed, mut took) = (0u64, 0u64);
        for _ in 0..ROUNDS {
            let mut drive = Drive::new(&model, SIZE);
            drive.submit(0, 0, &Request::Read(far..far + 1));
            let begun = at(&mut drive, 0) + random.below(20_000_000);
            let mut now = begun;
            let mut files = std::collections::BTreeSet::new();
            while (files.len() as u64) < FILES {
                let file = random.below(track);
                if files.insert(file) {
                    drive.submit(now, 1 + file, &Request::Read(file..file + 1));
                    let read = at(&mut drive, 1 + file);
                    missed += u64::from(read > now + 1);
                    now = read;
                }
            }
            took += now - begun - seek;
        }
        let (missed, took) = (missed as f64 / ROUNDS as f64, took as f64 / ROUNDS as f64);
        let (files, turn) = (FILES as f64, 60e9 / model.number("rpm"));
        let expected = if on_arrival { [harmonic, turn * files / (files + 1.0)] } else { [files, turn * files / 2.0] };
        assert!((missed / expected[0] - 1.0).abs() < 0.03, "{} {on_arrival}: {missed}, {expected:?}", model.name());
        assert!((took / expected[1] - 1.0).abs() < 0.03, "{} {on_arrival}: {took}, {expected:?}", model.name());
    }
}

/// Wherever the heads arrive: what passes before its beginning comes over the interface after the rest. Others wait for its beginning.
#[test]
fn a_whole_track_takes_a_turn() {
    for model in disks() {
        let (geometry, far) = (Geometry::new(&model, SIZE), SIZE / SECTOR_BYTES / 2);
        let (track, turn) = (of_a_track(&geometry), (60e9 / model.number("rpm")).round() as u64);
        let place = |sector| geometry.run(sector, sector + 1, 0, u64::MAX).2;
        let seek = geometry.seek_ns(place(far), place(0));
        for step in 0..20 {
            let mut drive = Drive::new(&model, SIZE);
            drive.submit(0, 0, &Request::Read(far..far + 1));
            let begun = at(&mut drive, 0) + step * turn / 20;
            drive.submit(begun, 1, &Request::Read(0..track));
            let there = begun + model.whole("command-time") + seek;
            let took = at(&mut drive, 1) - there;
            let waited = (turn - there % turn) % turn;
            let passed = waited * track / turn;
            let moved = |count: u64| (count * SECTOR_BYTES) as f64 * 1e9 / model.number("interface-rate");
            let on_arrival = turn + moved(passed) as u64;
            let expected = if model.number("read-on-arrival") > 0.5 { on_arrival } else { waited + turn };
            let off = turn / track + moved(1) as u64 + 2;
            assert!(took.abs_diff(expected) <= off, "{}: {took}, {expected}", model.name());
        }
    }
}

/// Until they leave for the next request, to the sector.
#[test]
fn heads_read_on_until_they_leave() {
    for model in disks() {
        let model = with(&model, &[("read-on-arrival", "0")]);
        let (geometry, far) = (Geometry::new(&model, SIZE), SIZE / SECTOR_BYTES / 2);
        let (track, turn) = (of_a_track(&geometry), (60e9 / model.number("rpm")).round() as u64);
        let idle_ns = turn / 10;
        let read_on = (idle_ns + model.whole("command-time")) * track / turn;
        for (sector, is_there) in [(7 + read_on, true), (9 + read_on, false)] {
            let mut drive = Drive::new(&model, SIZE);
            drive.submit(0, 0, &Request::Read(0..8));
            let left = at(&mut drive, 0) + idle_ns;
            drive.submit(left, 1, &Request::Read(far..far + 8));
            let now = at(&mut drive, 1);
            drive.submit(now, 2, &Request::Read(sector..sector + 1));
            let took = at(&mut drive, 2) - now;
            assert_eq!(took < model.whole("command-time") + 10_000, is_there, "{}, {sector}: {took}", model.name());
        }
    }
}

#[test]
fn the_segment_that_was_not_used_for_the_longest_time_is_used_again() {
    for model in disks() {
        let model = with(&model, &[("segments", "3"), ("read-on-arrival", "0")]);
        let place = |number: u64| number * (SIZE / SECTOR_BYTES / 8);
        let mut drive = Drive::new(&model, SIZE);
        let mut now = 0;
        let mut is_hit = |id: u64, number: u64| {
            drive.submit(now, id, &Request::Read(place(number)..place(number) + 8));
            let begun = std::mem::replace(&mut now, at(&mut drive, id));
            now - begun < model.whole("command-time") + 100_000
        };
        let asked = [1, 2, 3, 1, 4, 1, 3, 4, 2];
        let hits: Vec<bool> = (0..).zip(asked).map(|(id, number)| is_hit(id, number)).collect();
        assert_eq!(hits, [false, false, false, true, false, true, true, true, false], "{}", model.name());
    }
}

/// Each small read has one, wherever its heads arrive on the track and whatever passes them there.
#[test]
fn a_small_read_takes_one_segment() {
    for model in disks() {
        let segments = model.whole("segments");
        let mut random = Random(1);
        for _ in 0..20 {
            let places: Vec<u64> =
                (0..segments).map(|number| number * (SIZE / SECTOR_BYTES / segments) + 2000).collect();
            let mut drive = Drive::new(&model, SIZE);
            let mut now = 0;
            for (id, place) in (0..).zip(places.iter().chain(&places)) {
                let begun = now;
                drive.submit(now, id, &Request::Read(*place..place + 8));
                now = at(&mut drive, id);
                let is_hit = now - begun < model.whole("command-time") + 100_000;
                assert_eq!(is_hit, id >= segments, "{}: {id}", model.name());
                // The next one comes at any moment of a turn.
                now += if is_hit { 0 } else { random.below(8_000_000) };
            }
        }
    }
}

/// Of a buffer of four segments, three with room for two after a write of two.
#[test]
fn writes_and_reads_share_the_buffer() {
    for model in disks() {
        let sizes = [("buffer", "\"4 MiB\""), ("write-cache", "\"3 MiB\""), ("segment-size", "\"1 MiB\"")];
        let model = with(
            &model,
            &[sizes.as_slice(), &[("segments", "4"), ("queued-flush", "1"), ("queue-depth", "32")]].concat(),
        );
        let place = |number: u64| number * (SIZE / SECTOR_BYTES / 8);
        for (written, expected) in [(0, 4), (1, 3), (2, 2), (3, 1)] {
            let mut drive = Drive::new(&model, SIZE);
            let mut now = 0;
            for number in 1..=4 {
                drive.submit(now, number, &Request::Read(place(number)..place(number) + 8));
                now = at(&mut drive, number);
            }
            if written > 0 {
                drive.submit(now, 5, &Request::Write(place(6)..place(6) + (written << 20) / SECTOR_BYTES));
                now = at(&mut drive, 5);
            }
            // Those that were read last.
            for number in (1..=4).rev() {
                drive.submit(now, 10 + number, &Request::Read(place(number)..place(number) + 8));
            }
            let soon = now + model.whole("command-time") + 300_000;
            let mut hits = Vec::new();
            while let Some(event) = drive.next_event().filter(|event| *event < soon) {
                hits.extend(std::iter::from_fn(|| drive.completed(event)).map(|(_, id)| id - 10));
            }
            let kept: Vec<u64> = (1..=4).rev().take(expected).collect();
            assert_eq!(hits, kept, "{}, {written} MiB written", model.name());
        }
    }
}

/// What the heads have read ahead comes over the interface when it is asked for, while they read the rest.
#[test]
fn what_was_read_ahead_is_moved_as_well() {
    for model in disks() {
        let (track, turn) = (of_a_track(&Geometry::new(&model, SIZE)), (60e9 / model.number("rpm")).round() as u64);
        let idle_ns = turn / 3;
        let ahead = idle_ns * track / turn;
        let mut drive = Drive::new(&model, SIZE);
        drive.submit(0, 0, &Request::Read(0..8));
        let now = at(&mut drive, 0) + idle_ns;
        let end = 8 + ahead + 8;
        drive.submit(now, 1, &Request::Read(8..end));
        let took = (at(&mut drive, 1) - now) as f64;
        let moved = ((end - 8) * SECTOR_BYTES) as f64 * 1e9 / model.number("interface-rate");
        let expected = model.number("command-time") + moved;
        assert!((took - expected).abs() < 2.0, "{}: {took}, {expected}", model.name());
    }
}

/// The stream that was read before is not gone back to.
#[test]
fn heads_stay_where_they_wrote() {
    let next = 10_000_000_000 / SECTOR_BYTES;
    for (model, zeros) in disks().into_iter().flat_map(|model| [(model.clone(), false), (model, true)]) {
        let request = |sectors| if zeros { Request::Zero(sectors) } else { Request::Write(sectors) };
        let mut drive = Drive::new(&model, SIZE);
        drive.set_write_back(zeros);
        drive.submit(0, 0, &Request::Read(0..8));
        let mut now = at(&mut drive, 0);
        drive.submit(now, 1, &request(next - 8..next));
        now = at(&mut drive, 1) + 5_000_000;
        drive.submit(now, 2, &request(next..next + 8));
        let geometry = Geometry::new(&model, SIZE);
        let place = geometry.run(next - 1, next, 0, u64::MAX).2;
        let moved = if zeros { 0 } else { transfer_ns(8 * SECTOR_BYTES, model.number("interface-rate")) };
        let begun = geometry.arrival_ns(now + model.whole("command-time") + moved, place, next, 0);
        let written = geometry.run(next, next + 8, begun, u64::MAX).1;
        assert_eq!(at(&mut drive, 2), written, "{}, {zeros}", model.name());
    }
}

#[test]
fn what_is_found_in_the_read_cache_comes_in_the_order_of_arrival() {
    for model in disks().into_iter().filter(|model| model.number("queue-depth") > 2.0) {
        let mut drive = Drive::new(&model, SIZE);
        drive.submit(0, 0, &Request::Read(0..256));
        drive.submit(0, 1, &Request::Read(0..8));
        drive.submit(0, 2, &Request::Read(8..16));
        let first = at(&mut drive, 1);
        let between = transfer_ns(8 * SECTOR_BYTES, model.number("interface-rate"));
        assert_eq!(at(&mut drive, 2), first + between, "{}", model.name());
    }
}
