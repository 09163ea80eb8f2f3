//! Compact letter display: rows that cannot be told apart share a letter.

use std::collections::BTreeSet;

/// One sign for each group. More groups than these are not read by anybody.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZαβγδεζηθικλμνξοπρστυφχψω";

/// The worst case is exponential in the rows; a limit on the work is a limit on the harm.
const MAX_GROUPS: usize = 512;

type Group = BTreeSet<usize>;

/// The letters of each of `rows` rows: two rows share one exactly when `differ` is false for them.
///
/// Insert-and-absorb with sweeping: Piepho, "An algorithm for a letter-based representation of
/// all-pairwise comparisons", JCGS 13 (2004). Each letter is one `char`; the first row has "a", and
/// letters follow the order of the rows. `differ` is asked with the smaller index first. `None`
/// when the pattern needs more groups than there are letters.
pub fn letters(rows: usize, differ: impl Fn(usize, usize) -> bool) -> Option<Vec<String>> {
    let mut groups: Vec<Group> = vec![(0..rows).collect()];
    for i in 0..rows {
        for j in i + 1..rows {
            if differ(i, j) {
                groups = insert_and_absorb(groups, i, j);
                if groups.len() > MAX_GROUPS {
                    return None;
                }
            }
        }
    }
    sweep(&mut groups);
    groups.sort();
    if groups.len() > LETTERS.chars().count() {
        return None;
    }
    let of_row = |row| {
        let lettered = LETTERS.chars().zip(&groups);
        lettered.filter(|(_, group)| group.contains(&row)).map(|(letter, _)| letter).collect()
    };
    Some((0..rows).map(of_row).collect())
}

/// A group that holds both `i` and `j`, which differ, becomes two: one without each. A part that
/// lies inside another group says nothing new and is absorbed.
fn insert_and_absorb(groups: Vec<Group>, i: usize, j: usize) -> Vec<Group> {
    let (torn, mut kept): (Vec<Group>, Vec<Group>) =
        groups.into_iter().partition(|group| group.contains(&i) && group.contains(&j));
    let mut parts: Vec<Group> = torn
        .iter()
        .flat_map(|group| [i, j].map(|leaves| group.iter().copied().filter(|&row| row != leaves).collect()))
        .collect();
    // The largest first, so that a part can only lie inside one that was kept before it.
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    for part in parts {
        if !kept.iter().any(|group| part.is_subset(group)) {
            kept.push(part);
        }
    }
    kept
}

/// Takes a row out of a group when all it shares there it also shares elsewhere.
fn sweep(groups: &mut Vec<Group>) {
    for index in 0..groups.len() {
        let rows: Vec<usize> = groups[index].iter().copied().collect();
        for row in rows {
            let elsewhere = |other: usize| {
                (0..groups.len()).any(|g| g != index && groups[g].contains(&row) && groups[g].contains(&other))
            };
            // `other == row` asks for a second letter, so that no row loses its last one.
            if groups[index].iter().all(|&other| elsewhere(other)) {
                groups[index].remove(&row);
            }
        }
    }
    groups.retain(|group| !group.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_pairs(rows: usize, pairs: &[(usize, usize)]) -> Vec<String> {
        letters(rows, |i, j| pairs.contains(&(i, j))).unwrap()
    }

    #[test]
    fn simple_tables() {
        assert_eq!(from_pairs(3, &[]), ["a", "a", "a"]);
        assert_eq!(from_pairs(3, &[(0, 1), (0, 2), (1, 2)]), ["a", "b", "c"]);
        assert_eq!(from_pairs(3, &[(0, 2)]), ["a", "ab", "b"]);
        assert_eq!(from_pairs(1, &[]), ["a"]);
        assert!(from_pairs(0, &[]).is_empty());
    }

    /// The worked example of Piepho (2004): eight treatments.
    #[test]
    fn the_example_of_the_paper() {
        let one_based = [(1, 7), (1, 8), (2, 4), (2, 5), (3, 5)];
        let pairs: Vec<(usize, usize)> = one_based.iter().map(|(i, j)| (i - 1, j - 1)).collect();
        let found = from_pairs(8, &pairs);
        for i in 0..8 {
            for j in i + 1..8 {
                let shared = found[i].chars().any(|c| found[j].contains(c));
                assert_eq!(shared, !pairs.contains(&(i, j)), "{i} {j} {found:?}");
            }
        }
    }

    #[test]
    fn many_rows_get_distinct_letters() {
        let found = letters(60, |_, _| true).unwrap();
        let distinct: BTreeSet<&String> = found.iter().collect();
        assert_eq!(distinct.len(), 60);
    }

    #[test]
    fn a_pattern_without_a_readable_answer_is_refused() {
        // Rows in threes that differ within and not between: 3^8 groups.
        assert_eq!(letters(24, |i, j| i / 3 == j / 3), None);
        assert_eq!(letters(77, |_, _| true), None);
    }
}
