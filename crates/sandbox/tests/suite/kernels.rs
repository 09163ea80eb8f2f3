//! Kernels other than the installed one. They are tens of megabytes, so these tests take them from a store made before,
//! which `FSTONE_TEST_KERNELS` names; `guest_agent kernel add uml:5.10` and the like fill it.

use crate::support::{AMPLE, Turn, agent, done, fatal, skip};
use fstone_sandbox::guest::{Ending, Watch};
use fstone_sandbox::kernel::{Kernel, Store};
use fstone_sandbox::qemu::{Accelerator, QemuSpec, emulator};
use fstone_sandbox::uml::{UmlDisk, UmlSpec};
use fstone_sandbox::vhost::{Disk, DiskSpec};

fn kernel(name: &str) -> Option<Kernel> {
    let Ok(directory) = std::env::var("FSTONE_TEST_KERNELS") else {
        skip("FSTONE_TEST_KERNELS names no store of kernels");
        return None;
    };
    match Store::new(directory).find(name) {
        Ok(kernel) => Some(kernel),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

#[test]
fn old_and_new_user_mode_kernels_do_the_same_work() {
    for name in ["uml:5.10", "uml:6.1", "uml:6.12"] {
        let Some(kernel) = kernel(name) else { continue };
        let turn = Turn::for_any_kernel();
        let Some(image) = turn.image("ext4", 64) else { return };
        let disk = Disk::serve(&DiskSpec::new(&image), &turn.path("disk.sock")).unwrap();
        let mut spec = UmlSpec::new(kernel.as_uml().unwrap(), agent(), turn.directory.path());
        spec.disks = vec![UmlDisk::VhostUser(disk.socket().to_owned())];
        let mut guest = spec.boot().unwrap();
        assert_eq!(guest.hello().kernel_release, kernel.release);
        done(&mut guest, "mount", "/dev/vda ext4");
        done(&mut guest, "fsync-files", "10");
        done(&mut guest, "unmount", "");
        assert!(disk.counters().flushes >= 10, "{name}: {:?}", disk.counters());
        assert_eq!(guest.finish().ending, Ending::Bye, "{name}");
    }
}

#[test]
fn a_distributions_kernel_in_qemu() {
    if emulator().is_none() {
        return skip("qemu-system-x86_64 is not installed (apt-get install --no-install-recommends qemu-system-x86)");
    }
    for (name, filesystem) in [("qemu:6.1", "xfs"), ("qemu:6.12", "ext4")] {
        let Some(kernel) = kernel(name) else { continue };
        let turn = Turn::for_any_kernel();
        let Some(image) = turn.image(filesystem, 320) else { return };
        let disk = Disk::serve(&DiskSpec::new(&image), &turn.path("disk.sock")).unwrap();
        let mut spec = QemuSpec::new(kernel.clone(), agent(), turn.directory.path(), turn.path("cache"));
        spec.disks = vec![disk.socket().to_owned()];
        spec.modules = vec![filesystem.to_owned()];
        spec.asked_by_name = vec!["crc32c_generic".to_owned()];
        spec.watch = Watch { hello_limit: 2 * AMPLE, ..Watch::QEMU };
        let mut guest = spec.boot().unwrap();
        assert_eq!(guest.hello().kernel_release, kernel.release);
        done(&mut guest, "mount", &format!("/dev/vda {filesystem}"));
        done(&mut guest, "fsync-files", "10");
        done(&mut guest, "unmount", "");
        assert!(disk.counters().flushes >= 10, "{name}: {:?}", disk.counters());
        assert_eq!(guest.finish().ending, Ending::Bye, "{name}");

        // The same again with a panic, which QEMU itself reports.
        spec.disks.clear();
        spec.accelerator = Accelerator::Tcg;
        let mut guest = spec.boot().unwrap();
        let ending = fatal(&mut guest, "kernel-panic", "", AMPLE);
        assert!(matches!(ending, Ending::Panicked { .. }), "{name}: {ending:?}");
        assert!(ending.words().contains("sysrq triggered crash"), "{name}: {ending:?}");
        assert_eq!(turn.processes(), [] as [i32; 0]);
    }
}

/// What `kernel/count.pl` adds to a program counts what a debugger sees it execute, however the compiler arranged it, and lets a sampler
/// walk the stack.
#[test]
fn what_is_counted_was_executed() {
    let place = tempfile::tempdir().unwrap();
    let room = |name: &str| place.path().join(name);
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let assembler = room("as");
    std::fs::copy(sources.join("kernel/count.pl"), &assembler).unwrap();
    std::fs::set_permissions(&assembler, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for options in
        [["-O2", "-mcmodel=small"], ["-O1", "-mcmodel=small"], ["-Os", "-mcmodel=small"], ["-O2", "-mcmodel=large"]]
    {
        let source = sources.join("tests/suite/count.c");
        // Nothing of the kernel is compiled position-independent either.
        let compile = |object: &str, assembler: &[String]| {
            let mut gcc = std::process::Command::new("gcc");
            gcc.args(options).args(["-fno-PIE", "-fcf-protection=none", "-c", "-o"]).arg(room(object));
            gcc.args(assembler).arg(&source).status()
        };
        let Ok(status) = compile("count.o", &[format!("-B{}/", place.path().display())]) else {
            return crate::support::skip("gcc is not installed");
        };
        assert!(status.success() && compile("outside.o", &["-DOUTSIDE".into()]).unwrap().success(), "{options:?}");
        let link = std::process::Command::new("gcc")
            .arg("-no-pie")
            .arg("-o")
            .args([room("count"), room("count.o"), room("outside.o")])
            .status();
        assert!(link.unwrap().success());
        let said = std::process::Command::new(room("count")).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let number = |word: &str| {
            let (_, after) = said.split_once(&format!("{word} ")).unwrap_or_else(|| panic!("{word}: {said}"));
            after.split(|digit: char| !digit.is_ascii_digit()).next().unwrap().parse::<f64>().unwrap()
        };
        let (counted, executed) = (number("counted"), number("executed"));
        assert!(executed > 40_000.0 && (counted / executed - 1.0).abs() < 0.002, "{options:?}: {said}");
        assert!(said.contains(", 512 bytes"), "{options:?}: {said}");
        // Every stack ends where the work was called from, and what the samples say of each function is what was counted.
        let (samples, off) = (number("sampled"), number("off"));
        assert!(samples > 1500.0 && off < 0.03 * counted, "{options:?}: {said}");
        assert!(number("wrong") == 0.0 && number("deepest") > 7.0, "{options:?}: {said}");
    }
}
