//! No bytes make the reader of bundles panic or take memory without bound.
//!
//! What the input is, its first byte says: `z` a bundle as it is on the disk, `t` the tar archive in it, and anything
//! else names and contents, with 0xff between, which are made into an archive here with checksums and a manifest that
//! fit, because no fuzzer guesses a SHA-256.

#![no_main]

use fstone_store::bundle::check_bytes;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

fuzz_target!(|input: &[u8]| {
    let checked = match input {
        [b'z', bytes @ ..] => check_bytes(bytes, true),
        [b't', bytes @ ..] => check_bytes(bytes, false),
        _ => check_bytes(&archive(input), false),
    };
    match checked {
        Ok(contents) => assert!(!contents.digest.is_empty()),
        Err(refusal) => assert!(refusal.to_string().chars().all(|c| !c.is_control())),
    }
});

/// An archive whose entries are the input's pairs of a name and a content.
fn archive(input: &[u8]) -> Vec<u8> {
    let mut parts = input.split(|byte| *byte == 0xff);
    let mut archive = tar::Builder::new(Vec::new());
    let mut listed = Vec::new();
    while let (Some(name), Some(content)) = (parts.next(), parts.next()) {
        append(&mut archive, name, content);
        let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = String::from_utf8_lossy(name);
        listed.push(serde_json::json!({ "path": path, "bytes": content.len(), "sha256": sha256 }));
    }
    append(&mut archive, b"manifest.json", serde_json::json!({ "files": listed }).to_string().as_bytes());
    archive.into_inner().expect("memory does not fail")
}

fn append(archive: &mut tar::Builder<Vec<u8>>, name: &[u8], content: &[u8]) {
    let mut header = tar::Header::new_ustar();
    let name = &name[..name.len().min(100)];
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_size(content.len() as u64);
    header.set_cksum();
    archive.append(&header, content).expect("memory does not fail");
}
