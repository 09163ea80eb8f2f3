//! Distribution, CPU, memory and virtualization, from the texts the kernel and the distribution give.

use super::text;
use std::path::Path;

/// The pretty name in /etc/os-release (os-release(5)).
pub(super) fn distribution(os_release: &str) -> String {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(text::clean(line.trim_matches(['"', '\''])))
    };
    value("PRETTY_NAME").or_else(|| value("NAME")).unwrap_or_default()
}

/// The value of the first line `key : value`.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| text::clean(value))
    })
}

/// The CPU's name in /proc/cpuinfo, whose keys differ by architecture.
pub(super) fn cpu_model(cpuinfo: &str) -> Option<String> {
    // x86; ARM boards; POWER; s390; RISC-V.
    ["model name", "Model", "cpu", "processor 0", "uarch"].into_iter().find_map(|key| field(cpuinfo, key))
}

pub(super) fn memory_bytes(meminfo: &str, key: &str) -> Option<u64> {
    field(meminfo, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

pub(super) fn virtualization(cpuinfo: &str) -> Option<String> {
    let line = |path: &str| text::read_line(Path::new(path));
    let product = [line("/sys/class/dmi/id/sys_vendor"), line("/sys/class/dmi/id/product_name")];
    let container = if Path::new("/.dockerenv").exists() {
        Some("docker".to_owned())
    } else {
        line("/run/systemd/container").or_else(|| Path::new("/run/.containerenv").exists().then(|| "podman".to_owned()))
    };
    describe(cpuinfo, line("/sys/hypervisor/type"), &product.into_iter().flatten().collect::<Vec<_>>(), container)
}

/// DMI names every machine, real ones too; they count as a hypervisor's only when the CPU says there is one.
fn describe(
    cpuinfo: &str,
    hypervisor: Option<String>,
    product: &[String],
    container: Option<String>,
) -> Option<String> {
    let flagged = field(cpuinfo, "flags").is_some_and(|_| has_flag(cpuinfo, "hypervisor"));
    let machine = if field(cpuinfo, "vendor_id").is_some_and(|vendor| vendor == "User Mode Linux") {
        Some("user-mode Linux".to_owned())
    } else if flagged || hypervisor.is_some() {
        let name = hypervisor.into_iter().chain(product.iter().cloned()).collect::<Vec<_>>().join(", ");
        Some(if name.is_empty() { "a hypervisor".to_owned() } else { format!("a hypervisor ({name})") })
    } else {
        None
    };
    let container = container.map(|name| format!("a container ({name})"));
    let seen: Vec<String> = machine.into_iter().chain(container).collect();
    (!seen.is_empty()).then(|| seen.join(", "))
}

/// The flags are longer than [`field`] gives.
fn has_flag(cpuinfo: &str, flag: &str) -> bool {
    cpuinfo.lines().any(|line| {
        line.split_once(':')
            .is_some_and(|(name, value)| name.trim() == "flags" && value.split(' ').any(|word| word == flag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 207\n\
                       model name\t: Intel(R) Xeon(R) Processor\nflags\t\t: fpu vme hypervisor lahf_lm\n";

    #[test]
    fn cpus_of_several_architectures() {
        assert_eq!(cpu_model(X86).as_deref(), Some("Intel(R) Xeon(R) Processor"));
        assert_eq!(cpu_model("processor : 0\nModel\t: Raspberry Pi 4\n").as_deref(), Some("Raspberry Pi 4"));
        assert_eq!(cpu_model("cpu\t\t: POWER9, altivec\n").as_deref(), Some("POWER9, altivec"));
        for text in ["", "model name", "model name :", ":::\n"] {
            assert_eq!(cpu_model(text), None, "{text:?}");
        }
    }

    #[test]
    fn memory_and_distribution() {
        assert_eq!(memory_bytes("MemTotal:  24684092 kB\n", "MemTotal"), Some(24_684_092 * 1024));
        assert_eq!(memory_bytes("MemTotal: 99999999999999999999 kB\n", "MemTotal"), None);
        assert_eq!(memory_bytes("MemTotal: 5\n", "MemTotal"), None);
        assert_eq!(distribution("NAME=\"Debian\"\nPRETTY_NAME=\"Debian 12\u{7}\"\n"), "Debian 12");
        assert_eq!(distribution("NAME=Alpine\n"), "Alpine");
        assert_eq!(distribution("PRETTY_NAME"), "");
    }

    #[test]
    fn a_product_name_alone_is_no_hypervisor() {
        let product = ["QEMU".to_owned(), "Standard PC".to_owned()];
        let real = X86.replace(" hypervisor", "");
        assert_eq!(describe(&real, None, &product, None), None);
        assert_eq!(describe(X86, None, &product, None).as_deref(), Some("a hypervisor (QEMU, Standard PC)"));
        assert_eq!(describe(&real, Some("xen".into()), &[], None).as_deref(), Some("a hypervisor (xen)"));
        let both = describe(X86, None, &[], Some("docker".into()));
        assert_eq!(both.as_deref(), Some("a hypervisor, a container (docker)"));
        assert_eq!(describe("vendor_id : User Mode Linux\n", None, &[], None).as_deref(), Some("user-mode Linux"));
    }
}
