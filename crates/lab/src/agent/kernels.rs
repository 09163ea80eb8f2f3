//! Which kernel a study means.

use fstone_model::study::KernelSpec;
use fstone_sandbox::{
    agent::Modules,
    kernel::{Flavour, Kernel, Store, StoreError},
};
use std::path::Path;

/// A kernel named with this behind it gets its disk by user-mode Linux' own driver, which drops flushes.
const UBD_SUFFIX: &str = "+ubd";

/// How a guest's disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attachment {
    /// Our own disk, which honours flushes and counts.
    Vhost,
    /// User-mode Linux' own driver on the bare image.
    Ubd,
}

/// The kernel of a cell, and how it gets its disk.
pub(super) fn find(spec: &KernelSpec, kernels: &Path) -> Result<(Kernel, Attachment), StoreError> {
    let name = spec.written();
    let (name, wanted) = match name.strip_suffix(UBD_SUFFIX) {
        Some(name) if matches!(spec, KernelSpec::Uml(_)) => (name, Attachment::Ubd),
        _ => (name.as_str(), Attachment::Vhost),
    };
    let kernel = Store::new(kernels).find(name)?;
    // A kernel with a list of modules on which it is not, and no such driver built in, cannot have our disk.
    let lacks_driver = kernel.flavour == Flavour::Uml
        && kernel.modules.as_deref().is_some_and(|directory| {
            Modules::open(Some(directory)).is_ok_and(|modules| modules.order("virtio_blk").is_err())
        });
    Ok((kernel, if lacks_driver { Attachment::Ubd } else { wanted }))
}

/// Why trials under this kernel cannot be made; `None` when it is there.
#[must_use]
pub fn missing_kernel(spec: &KernelSpec, kernels: &Path) -> Option<String> {
    if *spec == KernelSpec::Host {
        return None;
    }
    find(spec, kernels).err().map(|error| error.to_string())
}

/// The same of a kernel that a study names itself. Named by its path it may be anybody's program: whether it is there is looked
/// at, and it is not started to ask for its release.
#[must_use]
pub fn missing_named_kernel(spec: &KernelSpec, kernels: &Path) -> Option<String> {
    let Some(path) = spec.path() else { return missing_kernel(spec, kernels) };
    let path = path.strip_suffix(UBD_SUFFIX).unwrap_or(path);
    (!Path::new(path).exists()).then(|| format!("there is no kernel {path}"))
}

/// What `--executor uml` and `--executor qemu` mean: the user-mode Linux that is installed, else the newest that was added.
#[must_use]
pub fn default_kernel(kernels: &Path, flavour: Flavour) -> Option<KernelSpec> {
    let release = Store::new(kernels).default(flavour)?.release;
    match flavour {
        Flavour::Uml => Some(KernelSpec::Uml(release)),
        Flavour::Qemu => Some(KernelSpec::Qemu(release)),
        Flavour::Exact => Some(KernelSpec::Exact(release)),
    }
}
