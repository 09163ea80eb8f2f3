//! A directory of its own for each test of the binary, with a store and a work directory in it.

use rustix::process::{Pid, Signal};
use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn tool(name: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|directory| Path::new(directory).join(name).exists())
}

pub(crate) fn has_uml() -> bool {
    let there = tool("linux.uml");
    if !there {
        eprintln!("skipped: linux.uml is not installed (apt-get install user-mode-linux)");
    }
    there
}

/// How long anything may take that has to happen: a machine may be busy, and a cluster's controller asks its nodes seldom.
pub(crate) const LIMIT: Duration = Duration::from_secs(200);

/// Fails when it has not happened within [`LIMIT`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let since = Instant::now();
    while !happened() {
        assert!(since.elapsed() < LIMIT, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn interrupt(child: &Child) {
    rustix::process::kill_process(Pid::from_child(child), Signal::INT).expect("it is running");
}

/// The lines that a child writes to standard error, as they come.
pub(crate) struct Said {
    lines: Receiver<String>,
    all: Vec<String>,
}

impl Said {
    pub(crate) fn by(child: &mut Child) -> Self {
        let (send, lines) = channel();
        let stream = BufReader::new(child.stderr.take().expect("a pipe"));
        thread::spawn(move || stream.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { lines, all: Vec::new() }
    }

    pub(crate) fn wait_for(&mut self, words: &str) {
        let since = Instant::now();
        while !self.all.iter().any(|line| line.contains(words)) {
            let left = LIMIT.saturating_sub(since.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.all.push(line),
                Err(error) => panic!("{words:?} is not said ({error}): {:#?}", self.all),
            }
        }
    }

    /// The exit status, standard output, and all that was said.
    pub(crate) fn end(mut self, mut child: Child) -> (i32, String, String) {
        let mut out = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("UTF-8");
        let status = child.wait().expect("a child").code().unwrap_or(-1);
        self.all.extend(self.lines.iter());
        (status, out, self.all.join("\n"))
    }
}

pub(crate) fn trials(report: &serde_json::Value) -> Vec<serde_json::Value> {
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().flat_map(|row| row["trials"].as_array().cloned().unwrap_or_default()).collect()
}

pub(crate) struct Bench {
    directory: tempfile::TempDir,
    /// The binary, and what runs it as somebody else.
    program: Vec<OsString>,
}

/// A small filesystem, unmounted when dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("fstone-test-").tempdir().expect("a temporary directory");
        // As a user's own directory: where others may write, there is no store.
        fs::DirBuilder::new().mode(0o700).create(directory.path().join("data")).expect("ours");
        Self { directory, program: vec![assert_cmd::cargo::cargo_bin!("fstone").into()] }
    }

    /// One whose binary is run by nobody, when this is root; otherwise by whoever this is.
    pub(crate) fn of_nobody() -> Self {
        let mut bench = Self::new();
        if is_root() {
            for own in [bench.directory.path(), &bench.path("data")] {
                std::os::unix::fs::chown(own, Some(65534), Some(65534)).expect("given away");
            }
            fs::set_permissions(bench.directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
            // The binary may be in a directory that nobody cannot enter.
            let copy = bench.path("fstone");
            fs::copy(assert_cmd::cargo::cargo_bin!("fstone"), &copy).expect("it can be copied");
            let home = format!("HOME={}", bench.directory.path().display());
            let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", &home];
            bench.program = nobody.into_iter().map(OsString::from).chain([copy.into()]).collect();
        }
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("data/fstone.db")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it can be written");
    }

    /// The search path for a machine on which e2fsck can no longer be run after it ran so many times.
    pub(crate) fn check_that_breaks(&self, runs: u32) -> String {
        let programs = self.path("programs");
        fs::create_dir(&programs).expect("ours");
        let check = format!(
            "#!/bin/sh\necho >>\"$0.runs\"\nif [ $(wc -l <\"$0.runs\") = {runs} ]; then mv \"$0.broken\" \"$0\"; fi\n\
             exec /sbin/e2fsck \"$@\"\n"
        );
        for (name, script) in [("e2fsck", check.as_str()), ("e2fsck.broken", "#!/nowhere\n")] {
            fs::write(programs.join(name), script).expect("ours");
            fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).expect("ours");
        }
        format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default())
    }

    pub(crate) fn tiny_study(&self, filesystems: &str) {
        self.write(
            "tiny.toml",
            &format!(
                "title = \"Tiny\"\nrepeats = 2\ndevice = {{ loop = {{ size = \"64 MiB\" }} }}\n[factor.filesystem]\n{filesystems}\n\
                 [[step]]\nload = {{ ffsb = \"tiny.ffsb\" }}\nshow = [\"transactions per second\", \"CPU\"]\n[[step]]\nfsck = {{}}\nshow = [\"time\"]\n"
            ),
        );
        self.write(
            "tiny.ffsb",
            "num_filesystems=1\nnum_threadgroups=1\ndirectio=0\ntime=1\n[filesystem0]\nlocation=/mnt/test/\nnum_files=20\nmin_filesize=4096\nmax_filesize=16384\n\
             [end0]\n[threadgroup0]\nnum_threads=4\nwrite_size=4096\nwrite_blocksize=4096\nread_blocksize=4096\ncreate_weight=1\nwrite_weight=40\nreadall_weight=60\nop_delay=2\n[end0]\n",
        );
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program[0]);
        command
            .args(&self.program[1..])
            .args(arguments)
            .current_dir(self.directory.path())
            .env("FSTONE_STORE", self.store())
            .env("FSTONE_WORK_DIRECTORY", self.work())
            // Tests run at the same time, and are not to notice each other.
            .env("FSTONE_MACHINE_LOCK", self.path("machine.lock"))
            .env_remove("SUDO_UID")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The binary with arguments, as a shell needs them; none of them has quotes.
    pub(crate) fn typed(&self, arguments: &[&str]) -> Vec<String> {
        let program = assert_cmd::cargo::cargo_bin!("fstone").display().to_string();
        std::iter::once(program)
            .chain(arguments.iter().map(|word| (*word).to_owned()))
            .map(|word| format!("'{word}'"))
            .collect()
    }

    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(self.directory.path())
            .env("FSTONE_STORE", self.store())
            .env("FSTONE_WORK_DIRECTORY", self.work())
            .env("FSTONE_MACHINE_LOCK", self.path("machine.lock"));
        command
    }

    /// A line of a shell at a terminal (of script(1), which every Debian has): what is shown up to the first question, what after the
    /// answer, and the exit status.
    pub(crate) fn at_a_terminal(&self, line: &str, answer: &str) -> (String, String, Option<i32>) {
        let mut child = self
            .shell(&format!("exec script --quiet --return --command \"{line}\" /dev/null"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script starts");
        let mut asked = String::new();
        let mut terminal = child.stdout.take().expect("piped");
        while !asked.contains("Type yes: ") {
            let mut byte = [0];
            assert_eq!(terminal.read(&mut byte).expect("read"), 1, "it ended without a question: {asked}");
            asked.push(char::from(byte[0]));
        }
        child.stdin.as_mut().expect("piped").write_all(answer.as_bytes()).expect("answered");
        let mut rest = String::new();
        terminal.read_to_string(&mut rest).expect("UTF-8");
        (asked, rest, child.wait().expect("it ends").code())
    }

    /// Exit status, standard output, standard error.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run_with(arguments, &[])
    }

    pub(crate) fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
        finish(self.command(arguments).envs(environment.iter().copied()))
    }

    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}\n{out}\n{err}");
        out
    }

    /// On a machine that lacks a tool: in a mount namespace of its own, where something that is no program hides it.
    pub(crate) fn run_without(&self, tool: &str, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec"])
            .arg(format!("for p in /usr/sbin /sbin /usr/bin /bin; do if [ -e $p/{tool} ]; then mount --bind /dev/null $p/{tool}; fi; done; exec \"$@\""))
            .arg("sh")
            .arg(assert_cmd::cargo::cargo_bin!("fstone"))
            .args(arguments)
            .current_dir(self.directory.path())
            .env("FSTONE_STORE", self.store())
            .env("FSTONE_WORK_DIRECTORY", self.work())
            .env("FSTONE_MACHINE_LOCK", self.path("machine.lock"));
        finish(&mut command)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.succeed(&["report", "--format", "json"])).expect("JSON")
    }

    pub(crate) fn mount_tmpfs(&self, options: &str) -> Mounted {
        self.mount(&["-t", "tmpfs", "-o", &format!("mode=755,{options}"), "tmpfs"])
    }

    /// 64 MiB of ext4 on a loop device, which goes with the mount.
    pub(crate) fn mount_ext4(&self) -> Mounted {
        let image = self.path("image");
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("it can be made");
        let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status();
        assert!(made.expect("mkfs.ext4 starts").success());
        self.mount(&["-o", "loop", image.to_str().expect("UTF-8")])
    }

    fn mount(&self, arguments: &[&str]) -> Mounted {
        let path = self.path("small");
        fs::create_dir(&path).expect("it can be made");
        let status = Command::new("mount").args(arguments).arg(&path).status();
        assert!(status.expect("mount starts").success());
        Mounted(path)
    }

    /// No mount and no loop device of this test is left, and its work directory is empty or gone.
    /// Whether a loop device has an image in the work directory.
    pub(crate) fn holds_device(&self) -> bool {
        let here = self.work().display().to_string();
        let loops = Command::new("losetup").arg("-a").output().expect("losetup starts");
        String::from_utf8_lossy(&loops.stdout).contains(&here)
    }

    pub(crate) fn assert_clean(&self) {
        let here = self.work().display().to_string();
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        assert!(!mounts.contains(&here), "{mounts}");
        let loops = Command::new("losetup").arg("-a").output().expect("losetup starts");
        assert!(!String::from_utf8_lossy(&loops.stdout).contains(&here), "{}", String::from_utf8_lossy(&loops.stdout));
        let left: Vec<_> = fs::read_dir(self.work())
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
            .unwrap_or_default();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn finish(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
