//! Removes from a run what reveals whose machine it was made on, before anything is computed or drawn.
//!
//! Every string of a run and its trials goes through here in its JSON form, so a field that is added to the model is
//! not forgotten. What nobody needs on a published page (the mounts, most of the kernel's command line) is left out entirely.

use super::scan::{ENDS, Telling, extent, is_host, is_ours, is_plain_device, is_word, server, telling};
use fstone_model::{Dataset, Inventory, Note, Trial, dataset::Run, note::NOTE_CHARACTERS};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is published although it reveals whose machine it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    /// Names and addresses of machines.
    pub hosts: bool,
    /// Paths that are not the same on every machine.
    pub paths: bool,
    /// Names of users, as far as paths tell them.
    pub users: bool,
    /// Serial numbers, UUIDs and names of devices that hold them.
    pub serials: bool,
}

impl Shown {
    const fn all(self) -> bool {
        self.hosts && self.paths && self.users && self.serials
    }
}

/// What was left of a run cannot be read as one.
#[derive(Debug, thiserror::Error)]
#[error("redact it: a name of a machine or user in it is a word that fstone needs ({0})")]
pub struct RedactError(#[from] serde_json::Error);

/// Names that reveal nothing about anybody, and that occur as words of studies and settings.
const NOBODYS: [&str; 30] = [
    "root",
    "localhost",
    "localdomain",
    "host",
    "user",
    "users",
    "guest",
    "nobody",
    "linux",
    "debian",
    "ubuntu",
    "fedora",
    "kernel",
    "fstone",
    "data",
    "home",
    "test",
    "none",
    "default",
    "loop",
    "memory",
    "blocks",
    "work",
    "src",
    "machine",
    "vm",
    "fs",
    "block",
    "server",
    "node",
];

/// Options on the kernel's command line that affect figures and reveal nothing else begin with these.
const OF_FIGURES: [&str; 24] = [
    "mitigations",
    "nosmt",
    "isolcpus",
    "nohz",
    "rcu_nocbs",
    "maxcpus",
    "nr_cpus",
    "mem=",
    "hugepages",
    "default_hugepagesz",
    "transparent_hugepage",
    "elevator",
    "scsi_mod.",
    "nvme",
    "intel_idle.",
    "processor.",
    "idle",
    "intel_pstate",
    "amd_pstate",
    "cpufreq",
    "preempt",
    "threadirqs",
    "numa",
    "pcie_aspm",
];

/// Removes what reveals the machine, in the same way in all runs that are published together.
#[derive(Debug, Clone)]
pub(super) struct Redactor {
    shown: Shown,
    /// What is put in place of names, the longest first.
    names: BTreeMap<Longest, String>,
    /// Paths that nothing but their occurrence elsewhere reveals, the longest first.
    places: BTreeSet<Longest>,
    /// What the machines are called now, by [`key`].
    machines: HashMap<String, String>,
    /// The number of each path.
    paths: HashMap<String, usize>,
}

/// A name, in an order in which one that holds another comes before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Longest(std::cmp::Reverse<usize>, String);

impl Longest {
    fn of(name: &str) -> Self {
        Self(std::cmp::Reverse(name.len()), name.to_owned())
    }

    /// Whether a text begins with it, in capitals or not.
    fn begins(&self, text: &str) -> bool {
        text.get(..self.1.len()).is_some_and(|start| start.eq_ignore_ascii_case(&self.1))
    }
}

/// What distinguishes machines: many are called "localhost".
fn key(name: &str, inventory: &Inventory) -> String {
    let Inventory { cpu_model, cpus, virtualization, .. } = inventory;
    format!("{name}\n{cpu_model}\n{cpus}\n{virtualization:?}")
}

/// The machines that a run names.
fn machines(run: &Run) -> impl Iterator<Item = (&str, &Inventory)> {
    let own = (run.inventory.host.as_str(), &run.inventory);
    std::iter::once(own).chain(run.blocks.iter().map(|origin| (origin.machine.as_str(), &origin.inventory)))
}

impl Redactor {
    /// For these runs, in the order in which their machines are numbered.
    pub(super) fn of(runs: &[&Dataset], shown: Shown) -> Self {
        let mut new = Self {
            shown,
            names: BTreeMap::new(),
            places: BTreeSet::new(),
            machines: HashMap::new(),
            paths: HashMap::new(),
        };
        for (name, inventory) in runs.iter().flat_map(|dataset| machines(&dataset.run)) {
            let number = new.machines.len() + 1;
            new.machines.entry(key(name, inventory)).or_insert_with(|| format!("machine {number}"));
            let known = new.machines[&key(name, inventory)].clone();
            new.host(name, &known);
            new.host(&inventory.host, &known);
        }
        for dataset in runs {
            new.learn(dataset);
        }
        new
    }

    /// A run without what reveals the machine. Its loads' reports are shortened to what a page shows.
    pub(super) fn redacted(&self, dataset: &Dataset, number: u64) -> Result<Dataset, RedactError> {
        let mut own = self.clone();
        own.learn(dataset);
        let mut run = dataset.run.clone();
        (run.id, run.identity) = (number, format!("published {number}"));
        own.machine(&mut run.inventory, &dataset.run.inventory.host);
        for (origin, was) in run.blocks.iter_mut().zip(&dataset.run.blocks) {
            own.machine(&mut origin.inventory, &was.machine);
            if !own.shown.hosts {
                origin.machine.clone_from(&origin.inventory.host);
            }
        }
        if let Some(program) = run.command.first_mut().filter(|_| !own.shown.paths) {
            "fstone".clone_into(program);
        }
        // It may become longer than a note may be.
        let note =
            run.note.take().map(|note| own.text(note.as_str()).chars().take(NOTE_CHARACTERS).collect::<String>());
        let mut run: Run = own.rewritten(&run)?;
        run.note = note.and_then(|note| Note::try_from(note).ok());
        let trials = dataset.trials.iter().map(|trial| {
            let mut trial: Trial = own.rewritten(trial)?;
            for load in trial.steps.iter_mut().filter_map(|step| step.load.as_mut()) {
                load.shorten();
            }
            Ok(trial)
        });
        Ok(Dataset { run, trials: trials.collect::<Result<_, RedactError>>()? })
    }

    /// What is published of a machine that was called so.
    fn machine(&self, inventory: &mut Inventory, name: &str) {
        if !self.shown.hosts
            && let Some(now) = self.machines.get(&key(name, inventory))
        {
            inventory.host.clone_from(now);
        }
        if self.shown.all() {
            return;
        }
        inventory.mounts.clear();
        let words = inventory.kernel_command_line.split_whitespace();
        let kept: Vec<&str> = words.filter(|word| OF_FIGURES.iter().any(|known| word.starts_with(known))).collect();
        inventory.kernel_command_line = kept.join(" ");
        let Some(device) = &mut inventory.device else { return };
        if !self.shown.serials {
            // People choose the names of volumes, and their identifiers are as unique as serial numbers.
            device.queue.retain(|(name, _)| !matches!(name.as_str(), "dm/name" | "dm/uuid"));
        }
        let is_source = |name: &str| name.contains(['/', ':', '@']);
        if is_source(&device.name) && !is_plain_device(&device.name) && !(self.shown.paths && self.shown.hosts) {
            "[device]".clone_into(&mut device.name);
        }
    }

    /// Learns the names in a run.
    fn learn(&mut self, dataset: &Dataset) {
        let written = serde_json::to_value(&dataset.run).into_iter();
        let written = written.chain(dataset.trials.iter().filter_map(|trial| serde_json::to_value(trial).ok()));
        for value in written {
            self.learn_value("", &value);
        }
        for (_, inventory) in machines(&dataset.run) {
            let device = inventory.device.iter().flat_map(|device| &device.queue);
            for (_, value) in device.filter(|(name, _)| matches!(name.as_str(), "dm/name" | "dm/uuid")) {
                self.name(value, "[serial]", self.shown.serials);
            }
        }
    }

    fn learn_value(&mut self, field: &str, value: &Value) {
        match value {
            Value::String(text) => {
                // Nodes of a cluster stand in the reports of ranks.
                if field == "host" {
                    self.host(text, "[host]");
                }
                self.learn_text(text);
                if matches!(field, "argv" | "command") {
                    self.learn_argument(text);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn_value(field, item)),
            Value::Object(fields) => fields.iter().for_each(|(name, item)| self.learn_value(name, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn learn_text(&mut self, text: &str) {
        // A word that is a path may have spaces in it.
        let whole = text.strip_prefix("--").and_then(|option| Some(option.split_once('=')?.1)).unwrap_or(text);
        if whole.starts_with('/') && !whole.contains('\n') {
            self.learn_path(whole);
        }
        self.learn_remote(whole);
        let homes = text.match_indices(['/', '~']).map(|(at, _)| &text[at..]);
        for rest in homes {
            for home in ["/home/", "/Users/", "/media/", "~"] {
                let name = rest
                    .strip_prefix(home)
                    .and_then(|rest| rest.split(|c: char| !is_word(c) && !"-.".contains(c)).next());
                // "~10 min" is a length of time.
                if let Some(name) = name.filter(|name| !name.starts_with(|c: char| c.is_ascii_digit())) {
                    self.name(name, "[user]", self.shown.users);
                }
            }
        }
        for (at, _) in text.match_indices("//").filter(|(at, _)| !text[..*at].ends_with([':', '/', '.'])) {
            if let Some(server) = server(&text[at..]).filter(|_| !text[..at].ends_with(is_word)) {
                self.host(server, "[host]");
            }
        }
        let small = text.to_ascii_lowercase();
        for (at, word) in small.match_indices("serial") {
            self.learn_serial(&text[at + word.len()..]);
        }
    }

    /// A word of a command that is a path from where the command ran: `trees/acme`, `of=images/acme`.
    fn learn_argument(&mut self, word: &str) {
        let path = word.rsplit('=').next().unwrap_or(word);
        let is_plain = |c: char| is_word(c) || "/.+@%-".contains(c);
        let named = path.contains(|c: char| c.is_ascii_alphabetic()) && path.trim_end_matches('/').contains('/');
        if named && path.starts_with(is_word) && path.chars().all(is_plain) && !is_ours(path) {
            self.place(path);
        }
    }

    /// A directory of another machine, as a whole word: `filer:/export`, `alice@filer.corp:/srv`, `mon1,mon2:6789:/`.
    fn learn_remote(&mut self, word: &str) {
        let Some((place, path)) = word.split_once(":/") else { return };
        let (user, hosts) = place.split_once('@').map_or((None, place), |(user, hosts)| (Some(user), hosts));
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let without_port = |host| match str::rsplit_once(host, ':') {
            Some((host, port)) if is_port(port) => host,
            _ => host,
        };
        let hosts: Vec<&str> = hosts.split(',').map(without_port).collect();
        if path.starts_with('/') || !hosts.iter().all(|host| is_host(host)) || !user.is_none_or(is_host) {
            return;
        }
        hosts.into_iter().for_each(|host| self.host(host, "[host]"));
        if let Some(user) = user {
            self.name(user, "[user]", self.shown.users);
        }
    }

    /// A path that is a whole word, its directories and the user whose home it is in.
    fn learn_path(&mut self, path: &str) {
        let path = path.split(": ").next().unwrap_or(path);
        if let Some(user) = path.strip_prefix("/home/").and_then(|rest| rest.split('/').next()) {
            self.name(user, "[user]", self.shown.users);
        }
        let Some(Telling::Path(_)) = telling(path, None) else { return };
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let spaced: Vec<&str> =
            ends.map(|end| &path[..end]).filter(|part| part.contains(|c| c == ' ' || ENDS.contains(&c))).collect();
        for part in spaced {
            self.place(part);
        }
    }

    /// The value after "serial", "Serial Number:", "ID_SERIAL_SHORT=".
    fn learn_serial(&mut self, rest: &str) {
        let label = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic() || "_ #.".contains(c));
        let Some(value) = label.strip_prefix([':', '=']).filter(|_| rest.len() - label.len() <= 12) else { return };
        let value = value.trim_start_matches([' ', '"', '\'', '\t']);
        let value = value.split(|c: char| c.is_whitespace() || "\"',;".contains(c)).next().unwrap_or_default();
        if value.len() >= 4 && value.contains(|c: char| c.is_ascii_digit()) {
            self.name(value, "[serial]", self.shown.serials);
        }
    }

    /// A machine's name, and that without its domain.
    fn host(&mut self, name: &str, now: &str) {
        self.name(name, now, self.shown.hosts);
        let short = name.split('.').next().unwrap_or_default();
        // An address has none, and a number is a word of many texts.
        if !short.bytes().all(|byte| byte.is_ascii_digit()) {
            self.name(short, now, self.shown.hosts);
        }
    }

    fn name(&mut self, name: &str, now: &str, shown: bool) {
        if !shown && name.len() > 1 && !NOBODYS.contains(&name.to_ascii_lowercase().as_str()) {
            self.names.entry(Longest::of(name)).or_insert_with(|| now.to_owned());
        }
    }

    fn place(&mut self, path: &str) {
        if !self.shown.paths && path.len() > 1 {
            self.places.insert(Longest::of(path));
        }
    }

    fn rewritten<T: Serialize + DeserializeOwned>(&mut self, of: &T) -> Result<T, RedactError> {
        let mut value = serde_json::to_value(of)?;
        self.rewrite(&mut value);
        // From text, as everything else is read: a reader of values is as much code again.
        Ok(serde_json::from_str(&value.to_string())?)
    }

    fn rewrite(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item)),
            // Keys are names of fields: nothing in the model is kept by what a user called it.
            Value::Object(fields) => fields.values_mut().for_each(|item| self.rewrite(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text without what tells.
    fn text(&mut self, text: &str) -> String {
        let (mut kept, mut rest, mut before) = (String::with_capacity(text.len()), text, None);
        while let Some(first) = rest.chars().next() {
            let name = self.name_at(rest, before);
            let (length, now) = match self.place_at(rest, before).or_else(|| telling(rest, before)) {
                // A name inside a path goes with the path: without its name the rest of it would not be one.
                Some(found) if name.is_none_or(|(length, _)| length < found.length()) => {
                    let (length, what) = (found.length(), &rest[..found.length()]);
                    let now = match found {
                        Telling::Path(_) if !self.shown.paths => self.path(what),
                        Telling::Serial(_) if !self.shown.serials => "[serial]".to_owned(),
                        Telling::Address(_) if !self.shown.hosts => "[address]".to_owned(),
                        _ => self.without_names(what),
                    };
                    (length, now)
                }
                _ => {
                    name.map_or_else(|| (first.len_utf8(), first.to_string()), |(length, now)| (length, now.to_owned()))
                }
            };
            kept.push_str(&now);
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
        kept
    }

    /// A text in which only names are replaced.
    fn without_names(&self, text: &str) -> String {
        let (mut kept, mut rest, mut before) = (String::with_capacity(text.len()), text, None);
        while let Some(first) = rest.chars().next() {
            let length = match self.name_at(rest, before) {
                Some((length, now)) => {
                    kept.push_str(now);
                    length
                }
                None => {
                    kept.push(first);
                    first.len_utf8()
                }
            };
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
        kept
    }

    /// The name that a text begins with as a whole word: its length, and what is put in its place.
    fn name_at(&self, rest: &str, before: Option<char>) -> Option<(usize, &str)> {
        if before.is_some_and(is_word) {
            return None;
        }
        let is_it = |name: &Longest| name.begins(rest) && !rest[name.1.len()..].starts_with(is_word);
        self.names.iter().find(|(name, _)| is_it(name)).map(|(name, now)| (name.1.len(), now.as_str()))
    }

    /// A known path, or one below it.
    fn place_at(&self, rest: &str, before: Option<char>) -> Option<Telling> {
        // What ends like a path from here may be one of the root's.
        let is_inside = before.is_some_and(|c| is_word(c) || "/.~-".contains(c));
        let is_it = |place: &&Longest| {
            (place.1.starts_with('/') || !is_inside)
                && place.begins(rest)
                && !rest[place.1.len()..].starts_with(is_word)
        };
        let place = self.places.iter().find(is_it)?.1.len();
        let below = &rest[place..];
        Some(Telling::Path(place + below[..extent(below, before)].trim_end_matches('.').len()))
    }

    /// Paths are numbered: two of them are not to look like one.
    fn path(&mut self, path: &str) -> String {
        let next = self.paths.len() + 1;
        let number = self.paths.entry(path.to_owned()).or_insert(next);
        format!("[path {number}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let mut new = Redactor {
            shown: Shown::default(),
            names: BTreeMap::new(),
            places: BTreeSet::new(),
            machines: HashMap::new(),
            paths: HashMap::new(),
        };
        new.host("eve-laptop.example.org", "machine 1");
        for text in [
            "/home/eve moon/study dir/x.toml",
            "cp /home/mallory/x y",
            "Serial Number: S4EWNX0N\n",
            "took ~10 min",
            "alice@filer.corp:/srv",
            "10.0.0.9:/export",
            "mon1.corp,mon2.corp:6789:/",
            "mount -t cifs //wardrobe.corp/plans /mnt",
            "//usr/bin/tar",
            "12.corp:/export",
            "/srv/acme,merger/x",
        ] {
            new.learn_text(text);
        }
        for word in ["of=images/acme", "compress=zstd", "9/10", "docs/x"] {
            new.learn_argument(word);
        }
        new
    }

    #[test]
    fn names_go_wherever_they_stand() {
        let mut redactor = redactor();
        for (text, kept) in [
            ("on Eve-Laptop.example.org and eve-laptop", "on machine 1 and machine 1"),
            ("mallory's patch", "[user]'s patch"),
            ("mallorys", "mallorys"),
            ("disk S4EWNX0N is slow", "disk [serial] is slow"),
            ("open /home/eve moon/study dir/y: no", "open [path 1]: no"),
            ("open '/home/eve moon/study dir/y z': no", "open '[path 2]': no"),
            ("cp '/srv/a b/c' /srv/d", "cp '[path 3]' [path 4]"),
            ("again /srv/d", "again [path 4]"),
            ("sshfs alice@filer.corp:/srv /usr/bin/x", "sshfs [user]@[host]:[path 5] /usr/bin/x"),
            ("no /home/mallory/acme-merger/plans here", "no [path 6] here"),
            ("no /mnt/eve-laptop/acme, no /srv/S4EWNX0N/acme", "no [path 7], no [path 8]"),
            ("/usr/bin/mallory and mallory/acme.toml", "/usr/bin/[user] and [path 9]"),
            ("https://bob:token@git.corp/x failed", "[address] failed"),
            ("tcp to 10.0.0.7:22, 10 times", "tcp to [address]:22, 10 times"),
            ("mon1 and mon2.corp are down, wardrobe is not", "[host] and [host] are down, [host] is not"),
            ("on 10.0.0.9 and 12.corp, 12 times", "on [host] and [host], 12 times"),
            ("no /srv/acme,merger/x", "no [path 10]"),
            ("images/acme: is full", "[path 11]: is full"),
            ("images/acme/merger.", "[path 12]."),
            ("image of /dev/loop0 in myimages/acme", "image of /dev/loop0 in myimages/acme"),
            ("run ./acme/x.toml then loads/acme.fio, 9/10 in docs/x", "run [path 13] then [path 14], 9/10 in docs/x"),
            ("/etc/acme/key, /usr/local/bin/acme, /usr/bin/tar", "[path 15], [path 16], /usr/bin/tar"),
            ("eth0 52-54-00-12-34-56", "eth0 [address]"),
            ("mount //wardrobe.corp/plans/acme: //usr/bin/tar", "mount [path 17]: //usr/bin/tar"),
            ("fsck.ext4 -n /dev/loop0, 400 MiB/s", "fsck.ext4 -n /dev/loop0, 400 MiB/s"),
        ] {
            assert_eq!(redactor.text(text), kept, "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_stays() {
        let mut redactor = Redactor { shown: Shown { paths: true, ..Shown::default() }, ..redactor() };
        assert_eq!(redactor.text("cp /srv/d x; 10.0.0.7"), "cp /srv/d x; [address]");
        assert_eq!(redactor.text("cp /home/mallory/acme x"), "cp /home/[user]/acme x");
    }
}
