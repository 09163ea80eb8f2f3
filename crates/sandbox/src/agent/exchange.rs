//! The directory that an exact guest shares with its host, and what is asked through it.

use crate::exact::{ANSWER, QUESTION};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Where the guest's own directory on the host is in the guest.
pub const EXCHANGE: &str = "/run/exchange";

/// The guest's one disk: a file whose reading asks it for its name.
const DISK_NAME: &str = "/sys/block/vda/serial";

/// Asks the host something, and waits for the answer; no time passes but that of a request to the disk.
pub(super) fn ask(number: u64, question: &[u8]) -> io::Result<Vec<u8>> {
    let exchange = Path::new(EXCHANGE);
    // Closing it writes it out to the host.
    fs::write(exchange.join(format!("{QUESTION}{number}")), question)?;
    File::open(DISK_NAME)?.read_exact(&mut [0])?;
    fs::read(exchange.join(format!("{ANSWER}{number}")))
}
