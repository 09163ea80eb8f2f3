//! The user's options for sbatch, and those among them that fstone sets itself.

/// fstone decides what the array consists of, and reads the answer.
const OWN: [(&str, Option<char>); 9] = [
    ("array", Some('a')),
    ("parsable", None),
    ("wrap", None),
    ("wait", Some('W')),
    ("test-only", None),
    ("output", Some('o')),
    ("clusters", Some('M')),
    ("cluster", None),
    ("job-name", Some('J')),
];

/// Letters of sbatch's without a value: another one may follow in the same word.
const FLAGS: &str = "hHIkKOQsuvVW";

/// `Err` names an option that fstone sets itself. Like getopt_long(3), sbatch takes any beginning of a long option's name, and letters
/// in one word.
pub(super) fn refuse_own(options: &[String]) -> Result<(), String> {
    for option in options {
        let own = match (option.strip_prefix("--"), option.strip_prefix('-')) {
            (Some(long), _) => {
                let name = long.split('=').next().unwrap_or_default();
                OWN.into_iter().find(|(own, _)| own.starts_with(name))
            }
            (None, Some(letters)) => of_letters(letters),
            (None, None) => None,
        };
        if let Some((name, _)) = own {
            let meant = if option.starts_with(&format!("--{name}")) { "" } else { ", which this may mean" };
            return Err(format!("fstone sets --{name} itself{meant}; leave out {option}"));
        }
    }
    Ok(())
}

/// The first of fstone's own among letters that are in one word: "Hofile" is hold, and output to file.
fn of_letters(letters: &str) -> Option<(&'static str, Option<char>)> {
    for letter in letters.chars() {
        let own = OWN.into_iter().find(|(_, own)| *own == Some(letter));
        if own.is_some() || !FLAGS.contains(letter) {
            // What follows is its value.
            return own;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fstone_sets_is_refused_however_it_is_written() {
        for own in [
            "-o",
            "-oFILE",
            "-o=x",
            "--output=x",
            "--out=x",
            "--array=1-3",
            "--arr=1",
            "--job=x",
            "--job-name=x",
            "-Jx",
            "-a1",
            "-Hofile",
            "--clu=a",
            "--wrap=ls",
            "--pars",
            "--wait",
            "-W",
            "-M",
            "--test",
            "--",
        ] {
            let refused = refuse_own(&[own.to_owned()]).expect_err(own);
            assert!(refused.contains("itself") && refused.contains(own), "{own}: {refused}");
        }
        let others = [
            "--partition=fast",
            "-pfast",
            "-p",
            "output",
            "-C",
            "nvme",
            "--wait-all-nodes=1",
            "--open-mode=append",
            "--jobid=1",
            "--oversubscribe",
            "-Hpoa",
            "-n1",
            "-eerrors",
            "--error=x",
            "--account=a",
            "--wckey=x",
            "--exclusive",
            "-O",
        ];
        assert_eq!(refuse_own(&others.map(str::to_owned)), Ok(()));
    }
}
