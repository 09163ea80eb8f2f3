//! A cluster of two virtual nodes on this machine, in namespaces of its own: it has a network, mounts and processes that nobody else
//! sees, and all of it is gone with its first process.

use crate::support::{Bench, LIMIT, is_root, tool};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const PROGRAMS: [&str; 7] = ["slurmctld", "slurmd", "sbatch", "munged", "setpriv", "unshare", "nsenter"];

pub(crate) struct Cluster {
    /// unshare(1), with which everything in its namespaces ends.
    outside: Child,
    /// The first process in them.
    inside: u32,
    directory: PathBuf,
}

impl Cluster {
    /// Two nodes, n1 and n2; `None`, and why, where there can be none.
    pub(crate) fn start(bench: &Bench) -> Option<Self> {
        let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !tool(program)).collect();
        if !is_root() || !missing.is_empty() {
            eprintln!(
                "skipped: a cluster of virtual nodes needs root and slurmctld, slurmd, slurm-client, munge (lacking: {missing:?})"
            );
            return None;
        }
        let directory = bench.path("cluster");
        for part in ["", "munge", "state", "n1", "n2", "tmp"] {
            fs::create_dir(directory.join(part)).expect("ours");
        }
        write(&directory.join("slurm.conf"), &configuration(&directory));
        write(&directory.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n");
        write(&directory.join("up.sh"), UP);
        let log = fs::File::create(directory.join("up.log")).expect("ours");
        // A test that is killed takes its cluster with it.
        let outside = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "sh",
                "up.sh",
            ])
            .current_dir(&directory)
            .env("SLURM_CONF", directory.join("slurm.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .spawn()
            .expect("unshare starts");
        let mut cluster = Self { outside, inside: 0, directory };
        cluster.wait_for(|cluster| {
            let children = format!("/proc/{0}/task/{0}/children", cluster.outside.id());
            let inside = fs::read_to_string(children).unwrap_or_default();
            inside.split_whitespace().next().and_then(|pid| pid.parse().ok()).map(|pid| cluster.inside = pid)
        });
        cluster.wait_for(|cluster| {
            let told = cluster.command("sinfo").args(["--noheader", "--format=%t %D"]).output().expect("sinfo starts");
            (String::from_utf8_lossy(&told.stdout).trim() == "idle 2").then_some(())
        });
        Some(cluster)
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let directory = self.directory.parent().expect("the bench's").display();
        command
            .args([
                "--net",
                "--mount",
                "--pid",
                &format!("--target={}", self.inside),
                &format!("--wd={directory}"),
                program,
            ])
            .env("SLURM_CONF", self.directory.join("slurm.conf"))
            .env("TMPDIR", self.directory.join("tmp"))
            .env_remove("SUDO_UID");
        command
    }

    pub(crate) fn fstone(&self, bench: &Bench, arguments: &[&str]) -> Command {
        let mut command = self.command(assert_cmd::cargo::cargo_bin!("fstone").to_str().expect("UTF-8"));
        command
            .args(arguments)
            .env("FSTONE_STORE", bench.store())
            .env("FSTONE_WORK_DIRECTORY", bench.work())
            .env("FSTONE_MACHINE_LOCK", bench.path("machine.lock"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A node dies with all that runs on it.
    pub(crate) fn kill(&self, node: &str) {
        let spool = self.directory.join(node).display().to_string();
        let environment = format!("SLURMD_NODENAME={node}");
        let mut killed = 0;
        // Those of the cluster's own namespace: all others have another root of processes.
        let own = fs::read_link(format!("/proc/{}/ns/pid", self.inside)).expect("it runs");
        for process in fs::read_dir("/proc").expect("readable").flatten() {
            let path = process.path();
            let Some(id) = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            if fs::read_link(path.join("ns/pid")).ok().as_ref() != Some(&own) {
                continue;
            }
            let words =
                |name: &str| String::from_utf8_lossy(&fs::read(path.join(name)).unwrap_or_default()).replace('\0', " ");
            let command = words("cmdline");
            let is_daemon = command.contains(&format!("slurmd -N {node}")) || command.contains(&spool);
            if is_daemon || words("environ").contains(&environment) {
                let id = rustix::process::Pid::from_raw(id).expect("no 0");
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
                killed += 1;
            }
        }
        assert!(killed > 0, "the node was there");
    }

    fn wait_for<T>(&mut self, mut happened: impl FnMut(&mut Self) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(value) = happened(self) {
                return value;
            }
            let ended = self.outside.try_wait().expect("a child").is_some();
            if ended || since.elapsed() > LIMIT {
                let log = |name: &str| fs::read_to_string(self.directory.join(name)).unwrap_or_default();
                panic!("no cluster\n{}\n{}\n{}", log("up.log"), log("slurmctld.log"), log("slurmd-n1.log"));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.outside.kill();
        let _ = self.outside.wait();
        // The kernel ends the others after their first process.
        let since = Instant::now();
        while Path::new(&format!("/proc/{}", self.inside)).exists() && since.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("ours");
}

/// With the loopback interface alone names are not looked up, so there is a pair of virtual ones.
const UP: &str = "set -e
ip link set lo up
ip link add d0 type veth peer name d1
ip address add 10.99.0.1/24 dev d0
ip link set d0 up
ip link set d1 up
chmod 700 munge
dd if=/dev/urandom of=munge/key bs=1024 count=1 2>/dev/null
chmod 400 munge/key
here=$(pwd)
munged --force --socket=$here/munge/socket --key-file=$here/munge/key --pid-file=$here/munge/pid --log-file=$here/munge/log --seed-file=$here/munge/seed
slurmctld -i
slurmd -N n1
slurmd -N n2
exec sleep infinity
";

fn configuration(directory: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("it has one");
    let (host, here) = (host.trim(), directory.display());
    format!(
        "ClusterName=test
SlurmctldHost={host}(10.99.0.1)
SlurmctldPort=16820
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={here}/munge/socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=5
KillWait=10
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/%n
SlurmdPidFile={here}/slurmd-%n.pid
SlurmctldPidFile={here}/slurmctld.pid
SlurmdLogFile={here}/slurmd-%n.log
SlurmctldLogFile={here}/slurmctld.log
NodeName=n[1-2] NodeHostname={host} NodeAddr=10.99.0.1 Port=[16821-16822] CPUs=2 Feature=nvme
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=fast Nodes=ALL MaxTime=INFINITE State=UP
"
    )
}
