//! The wire protocol: its bytes are pinned, and no input breaks its reader.

use fstone_sandbox::frames::{
    FrameReader, FrameWriter, Heartbeat, Hello, JobStatus, Message, ReadError, TscFacts, check_stream, encode,
};
use proptest::prelude::*;
use std::io::Read;

fn one_of_each() -> Vec<Message> {
    vec![
        Message::Hello(Hello {
            kernel_release: "6.1.0".into(),
            kernel_version: "#1".into(),
            agent_version: "0.1.0".into(),
            cpus: 1,
            memory_bytes: 1 << 28,
            booted_ns: 5,
            filesystems: vec!["ext4".into()],
            disks: vec![("vda".into(), 512)],
            tsc: TscFacts::default(),
            complaints: vec![],
        }),
        Message::Job { id: 7, kind: "echo".into(), body: b"\x00\xff".to_vec() },
        Message::Heartbeat(Heartbeat { count: 1, monotonic_ns: 2, tsc: 3, job: Some(7) }),
        Message::Progress { id: 7, text: "half".into() },
        Message::Result { id: 7, status: JobStatus::Done, body: b"ok".to_vec() },
        Message::Result { id: 8, status: JobStatus::Failed("no".into()), body: vec![] },
        Message::Log { text: "é".into() },
        Message::Ack { sequence: 9 },
        Message::Dump,
        Message::Bye,
        Message::Chunk { body: b"piece".to_vec() },
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A change here is a new protocol version.
#[test]
fn encoded_bytes_of_version_1() {
    let frames: Vec<String> =
        one_of_each().iter().enumerate().map(|(at, message)| hex(&encode(message, at as u32).unwrap())).collect();
    let pinned: Vec<&str> = include_str!("pinned/version_1.hex").lines().collect();
    assert_eq!(frames, pinned);
}

#[test]
fn what_is_written_is_read() {
    let mut stream = Vec::new();
    let mut writer = FrameWriter::new(&mut stream);
    for (at, message) in one_of_each().iter().enumerate() {
        assert_eq!(writer.send(message).unwrap(), at as u32);
    }
    let mut reader = FrameReader::new(stream.as_slice());
    for (at, message) in one_of_each().into_iter().enumerate() {
        assert_eq!(reader.next_message().unwrap(), (at as u32, message));
    }
    assert!(matches!(reader.next_message(), Err(ReadError::Closed)));
    assert_eq!(check_stream(&stream), one_of_each().len());
}

#[test]
fn each_kind_of_damage_has_its_own_words() {
    let frame = encode(&Message::Log { text: "hello".into() }, 0).unwrap();
    let damaged = |at: usize, byte: u8| {
        let mut bytes = frame.clone();
        bytes[at] = byte;
        FrameReader::new(bytes.as_slice()).next_message().unwrap_err()
    };
    assert!(matches!(damaged(0, b'['), ReadError::Magic { found: [b'[', b's'] }));
    let version = damaged(2, 200);
    assert!(matches!(version, ReadError::Version { found: 200 }));
    assert!(version.to_string().contains("use the same fstone on both"), "{version}");
    assert!(matches!(damaged(3, 77), ReadError::Kind { found: 77 }));
    assert!(matches!(damaged(4, 1), ReadError::Checksum { .. }));
    assert!(matches!(damaged(11, 0xff), ReadError::TooLong { .. }));
    assert!(matches!(damaged(frame.len() - 1, b'!'), ReadError::Checksum { .. }));
    let late = encode(&Message::Bye, 3).unwrap();
    assert!(matches!(
        FrameReader::new(late.as_slice()).next_message(),
        Err(ReadError::Sequence { expected: 0, found: 3 })
    ));
}

/// Checksum and JSON are right, and what they say cannot be.
#[test]
fn messages_that_make_no_sense_are_refused() {
    let Some(Message::Hello(hello)) = one_of_each().into_iter().next() else { unreachable!("hello is the first") };
    let hello = |change: &dyn Fn(&mut Hello)| {
        let mut changed = hello.clone();
        change(&mut changed);
        Message::Hello(changed)
    };
    for (message, told) in [
        (
            hello(&|it| it.kernel_release = "6.1\u{1b}[2J".into()),
            "the kernel's release \"6.1\\u{1b}[2J\" is not one line",
        ),
        (hello(&|it| it.kernel_version = "#1\n#2".into()), "the kernel's version \"#1\\n#2\" is not one line"),
        (hello(&|it| it.agent_version = "0.1\u{202e}".into()), "is not one line"),
        (hello(&|it| it.filesystems = vec!["../ext4".into()]), "\"../ext4\" names no filesystem"),
        (hello(&|it| it.filesystems = vec![String::new()]), "\"\" names no filesystem"),
        (hello(&|it| it.disks = vec![("..".into(), 512)]), "\"..\" names no disk"),
        (hello(&|it| it.disks = vec![("vda".into(), 0)]), "the disk vda has no blocks"),
        (hello(&|it| it.disks.push(("vda".into(), 1024))), "the disk vda is there twice"),
        (hello(&|it| it.tsc.ticks_per_second = 1), "facts are told of a time-stamp counter that is not there"),
        (Message::Progress { id: 7, text: "half\r\u{1b}[1A".into() }, "its text is not one line"),
        (
            Message::Result { id: 8, status: JobStatus::Failed("no".into()), body: b"yes".to_vec() },
            "a job that failed has a result of 3 bytes",
        ),
    ] {
        let frame = encode(&message, 0).expect("its form is right");
        let error = FrameReader::new(frame.as_slice()).next_message().expect_err(told).to_string();
        assert!(error.contains(told), "{error}");
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}

/// A header that promises 64 MiB and delivers nothing must not make the host allocate 64 MiB.
#[test]
fn a_promise_costs_no_memory() {
    struct Counting<'a>(&'a [u8], usize);
    impl Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1.max(buffer.len());
            self.0.read(buffer)
        }
    }
    let mut frame = encode(&Message::Job { id: 1, kind: "x".into(), body: vec![1; 1000] }, 0).unwrap();
    frame[8..12].copy_from_slice(&(64u32 << 20).to_le_bytes());
    let mut stream = Counting(&frame, 0);
    let error = FrameReader::new(&mut stream).next_message().unwrap_err();
    assert!(matches!(error, ReadError::Truncated { want, .. } if want > 64 << 20), "{error}");
    assert!(stream.1 <= 1 << 20, "a read of {} bytes was prepared", stream.1);
}

#[test]
fn too_long_is_refused_before_it_is_sent() {
    let text = "x".repeat(65 << 10);
    assert!(encode(&Message::Log { text: text.clone() }, 0).is_err());
    assert!(encode(&Message::Job { id: 1, kind: text, body: vec![] }, 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = check_stream(&bytes);
    }

    #[test]
    fn garbage_behind_a_valid_magic_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..12) {
        let mut stream = vec![b'f', b's', 1, kind, 0, 0, 0, 0];
        stream.extend(bytes);
        prop_assert_eq!(check_stream(&stream), 0);
    }

    #[test]
    fn every_truncation_is_noticed(pick in 0usize..11, share in 0.0f64..1.0) {
        let frame = encode(&one_of_each()[pick], 0).unwrap();
        let cut = ((frame.len() as f64) * share) as usize;
        let error = FrameReader::new(&frame[..cut]).next_message().unwrap_err();
        let noticed = if cut == 0 { matches!(error, ReadError::Closed) } else { matches!(error, ReadError::Truncated { .. }) };
        prop_assert!(noticed, "{}", error);
    }

    #[test]
    fn every_flipped_bit_is_noticed(pick in 0usize..11, at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut frame = encode(&one_of_each()[pick], 0).unwrap();
        let at = at.index(frame.len());
        frame[at] ^= 1 << bit;
        prop_assert!(FrameReader::new(frame.as_slice()).next_message().is_err());
    }

    #[test]
    fn any_body_survives(id in any::<u32>(), kind in ".{0,40}", body in proptest::collection::vec(any::<u8>(), 0..5000), sequence in any::<u32>()) {
        let message = Message::Job { id, kind, body };
        let frame = encode(&message, sequence).unwrap();
        prop_assert_eq!(encode(&message, sequence).unwrap(), frame.clone());
        if sequence == 0 {
            prop_assert_eq!(FrameReader::new(frame.as_slice()).next_message().unwrap().1, message);
        } else {
            let refused = matches!(FrameReader::new(frame.as_slice()).next_message(), Err(ReadError::Sequence { .. }));
            prop_assert!(refused);
        }
    }
}
