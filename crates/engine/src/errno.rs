//! Error numbers in words.

use rustix::io::Errno;

const SYMBOLS: &[(Errno, &str)] = &[
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::TXTBSY, "ETXTBSY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::MLINK, "EMLINK"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::LOOP, "ELOOP"),
    (Errno::NODATA, "ENODATA"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::STALE, "ESTALE"),
    (Errno::UCLEAN, "EUCLEAN"),
    (Errno::DQUOT, "EDQUOT"),
    (Errno::CANCELED, "ECANCELED"),
    (Errno::BADMSG, "EBADMSG"),
    (Errno::ILSEQ, "EILSEQ"),
    (Errno::RANGE, "ERANGE"),
    (Errno::TOOBIG, "E2BIG"),
];

/// "No space left on device".
pub fn errno_words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// "ENOSPC: No space left on device".
pub(crate) fn describe(errno: Errno) -> String {
    let (number, text) = (errno.raw_os_error(), errno_words(errno));
    match SYMBOLS.iter().find(|(known, _)| *known == errno) {
        Some((_, symbol)) => format!("{symbol}: {text}"),
        None => format!("errno {number}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_numbers() {
        assert_eq!(describe(Errno::NOSPC), "ENOSPC: No space left on device");
        assert_eq!(describe(Errno::UCLEAN), "EUCLEAN: Structure needs cleaning");
        assert!(describe(Errno::from_raw_os_error(999)).starts_with("errno 999: "));
    }
}
