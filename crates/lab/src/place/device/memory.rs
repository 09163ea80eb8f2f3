//! Images in memory: files without a directory, whose blocks are pages.
//!
//! A disk that others share decides how long a final sync takes, and by how much that varies. An image in memory has nobody
//! else on it; what it costs is a copy.

use super::{
    error::DeviceError,
    numbers::{FileId, file_id},
};
use rustix::fs::{MemfdFlags, memfd_create};
use std::{fs::File, io};

/// Makes an image, sparse and empty. The kernel takes it back when it is closed and nothing is mounted from it.
pub(super) fn image(size_bytes: u64) -> Result<(FileId, File), DeviceError> {
    let failed = |what: &'static str| move |cause: io::Error| DeviceError::System { what: what.into(), cause };
    let made = memfd_create("fstone-image", MemfdFlags::CLOEXEC);
    let file = File::from(made.map_err(|errno| failed("making an image in memory")(errno.into()))?);
    file.set_len(size_bytes).map_err(failed("sizing an image in memory"))?;
    let id = file_id(&file.metadata().map_err(failed("examining an image in memory"))?);
    Ok((id, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_sparse_and_of_its_size() {
        use std::os::unix::fs::MetadataExt;
        let (id, file) = image(1 << 40).expect("a file in memory");
        let facts = file.metadata().expect("facts");
        assert_eq!((facts.len(), facts.blocks(), facts.ino()), (1 << 40, 0, id.inode));
    }
}
