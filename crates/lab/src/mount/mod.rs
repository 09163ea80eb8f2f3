//! Mounting through the kernel's new mount interface, which says why it refuses.
