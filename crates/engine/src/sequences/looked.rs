//! A look at a tree after a power cut.

use super::oracle::{Aspect, Finding};
use super::perform::Performed;
use super::properties::Property;
use super::tree::Tree;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    pub facts: BTreeMap<Aspect, Finding>,
    /// What applications would like to rely on, where this cut could have broken it.
    pub properties: BTreeMap<Property, Finding>,
}

impl Performed {
    /// Looks at the tree after a power cut before which so many calls had returned.
    pub fn look(&self, root: &Path, returned: usize) -> Looked {
        let found = Tree::read(root);
        Looked { facts: self.compare(&found, returned), properties: self.properties(&found, returned) }
    }
}
