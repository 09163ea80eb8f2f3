//! Archives of source trees that a plan's commands work on.
//!
//! A study writes `{source}` for the archive of a kernel's source tree, whichever the machine has, and `{source:FILES}`
//! for one made of so many files. Compiling leaves both as they are, like `{mount}`: which archive there is, is for
//! the caller to find out, once for the run, and to put in with [`put_source_trees`].

use fstone_model::{Plan, study::StepAction};
use std::sync::Arc;

/// A source tree whose archive a plan wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceTree {
    /// A kernel's: an installed one, or one made in its likeness.
    Kernel,
    Made {
        files: u64,
    },
}

const OPENING: &str = "{source";

/// The source trees that a plan wants, each once.
pub fn source_trees(plan: &Plan) -> Vec<SourceTree> {
    let of_steps = plan.cells.iter().flat_map(|cell| &cell.steps).flat_map(|step| texts(&step.action));
    let of_filesystems = plan.cells.iter().filter_map(|cell| cell.filesystem.tree.as_deref());
    let mut wanted: Vec<SourceTree> =
        of_steps.chain(of_filesystems).flat_map(|text| found(text).filter_map(|(_, tree)| tree)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Puts the paths of archives in place of the source trees that a plan's commands name. tar has to recognise the archive's
/// compression by itself.
pub fn put_source_trees(plan: &mut Plan, path_of: impl Fn(SourceTree) -> String) {
    for cell in &mut plan.cells {
        let texts = cell.steps.iter_mut().flat_map(|step| match &mut step.action {
            StepAction::Command { argv, .. } => argv.iter_mut().collect::<Vec<_>>(),
            StepAction::CopyIn { source, .. } => vec![source],
            StepAction::Service(service) => Arc::make_mut(service).words_mut().collect(),
            _ => Vec::new(),
        });
        for text in texts.chain(&mut cell.filesystem.tree) {
            let mut filled = String::new();
            let mut done = 0;
            for (place, tree) in found(text) {
                let Some(tree) = tree else { continue };
                filled.push_str(&text[done..place.start]);
                filled.push_str(&path_of(tree));
                done = place.end;
            }
            filled.push_str(&text[done..]);
            *text = filled;
        }
    }
}

fn texts(action: &StepAction) -> Vec<&str> {
    match action {
        StepAction::Command { argv, .. } => argv.iter().map(String::as_str).collect(),
        StepAction::CopyIn { source, .. } => vec![source],
        StepAction::Service(service) => service.words().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Where a text names source trees, and which; `None` for what cannot be one.
pub(super) fn found(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, Option<SourceTree>)> {
    text.match_indices(OPENING).filter_map(|(start, _)| {
        let rest = &text[start + OPENING.len()..];
        let end = rest.find('}')?;
        let tree = match rest[..end].strip_prefix(':') {
            None if end == 0 => Some(SourceTree::Kernel),
            // Another name that begins with the same letters.
            None => return None,
            Some(files) => files.parse().ok().filter(|files| *files > 0).map(|files| SourceTree::Made { files }),
        };
        Some((start..start + OPENING.len() + end + 1, tree))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_trees_are_found() {
        let text = "tar xf {source} {source:500}/{sources} {source:x} {source";
        let trees: Vec<_> = found(text).map(|(place, tree)| (&text[place], tree)).collect();
        assert_eq!(
            trees,
            [
                ("{source}", Some(SourceTree::Kernel)),
                ("{source:500}", Some(SourceTree::Made { files: 500 })),
                ("{source:x}", None)
            ]
        );
    }
}
