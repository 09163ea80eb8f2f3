//! Which kernel a study means.

use fstone_model::study::KernelSpec;
use fstone_sandbox::kernel::{Flavour, Kernel, Store, StoreError};
use std::path::Path;

pub(crate) fn find(spec: &KernelSpec, kernels: &Path) -> Result<Kernel, StoreError> {
    Store::new(kernels).find(&spec.written())
}

/// Why trials under this kernel cannot be made; `None` when it is there.
pub fn missing_kernel(spec: &KernelSpec, kernels: &Path) -> Option<String> {
    if *spec == KernelSpec::Host {
        return None;
    }
    find(spec, kernels).err().map(|error| error.to_string())
}

/// The same of a kernel that a study names itself. Named by its path it may be anybody's program: whether it is there is looked
/// at, and it is not started to ask for its release.
pub fn missing_named_kernel(spec: &KernelSpec, kernels: &Path) -> Option<String> {
    let Some(path) = spec.path() else { return missing_kernel(spec, kernels) };
    (!Path::new(path).exists()).then(|| format!("there is no kernel {path}"))
}

/// What `--executor uml` and `--executor qemu` mean: the user-mode Linux that is installed, else the newest that was added.
pub fn default_kernel(kernels: &Path, flavour: Flavour) -> Option<KernelSpec> {
    let release = Store::new(kernels).default(flavour)?.release;
    match flavour {
        Flavour::Uml => Some(KernelSpec::Uml(release)),
        Flavour::Qemu => Some(KernelSpec::Qemu(release)),
        Flavour::Exact => Some(KernelSpec::Exact(release)),
    }
}
