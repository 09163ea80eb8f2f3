//! Whose files a phase of one of many ranks works on.

use super::{Phase, Workload};
use serde::{Deserialize, Serialize};

/// Two ranks, as seen by a third.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankShift {
    /// Whose files it works on.
    pub of: u32,
    /// Who works on its own meanwhile.
    pub by: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// All ranks, those of a node one after the other.
    order: Vec<u32>,
    /// Where each rank is in that.
    place: Vec<u32>,
    /// The most ranks of a node; `None` where there is one node.
    most: Option<u32>,
}

impl Neighbours {
    /// From each rank's node.
    pub fn on<N: Ord>(nodes: &[N]) -> Self {
        // Nodes are in the order of their first ranks.
        let mut ranks: Vec<u32> = (0..).zip(nodes).map(|(rank, _)| rank).collect();
        let node = |rank: &u32| &nodes[*rank as usize];
        ranks.sort_by(|one, other| node(one).cmp(node(other)).then(one.cmp(other)));
        let mut by_node: Vec<&[u32]> = ranks.chunk_by(|one, other| node(one) == node(other)).collect();
        by_node.sort_by_key(|ranks| ranks[0]);
        let most = by_node.iter().map(|ranks| ranks.len() as u32).max().filter(|_| by_node.len() > 1);
        let order = by_node.concat();
        let mut place = vec![0; order.len()];
        for (at, rank) in (0..).zip(&order) {
            place[*rank as usize] = at;
        }
        Self { order, place, most }
    }

    /// Whose files a rank works on in a phase.
    ///
    /// Each rank's files are worked on by one rank. That is on another node wherever all nodes have equally many ranks; of nodes that
    /// have not, most ranks reach another one.
    pub fn of(&self, phase: &Phase, rank: u32) -> RankShift {
        let ranks = self.order.len().max(1) as u64;
        let each = u64::from(self.most.unwrap_or(1));
        let nodes = u64::from(phase.node_shift) * each % ranks;
        let place = self.place.get(rank as usize).copied().map_or(0, u64::from);
        let at = |place: u64| self.order.get((place % ranks) as usize).copied().unwrap_or(rank);
        if nodes > 0 {
            return RankShift { of: at(place + nodes), by: at(place + ranks - nodes) };
        }
        let by = u64::from(phase.rank_shift) % ranks;
        let rank = u64::from(rank);
        RankShift { of: ((rank + by) % ranks) as u32, by: ((rank + ranks - by) % ranks) as u32 }
    }
}

impl Phase {
    /// Whether ranks work on each other's files in it.
    pub const fn is_shifted(&self) -> bool {
        self.rank_shift > 0 || self.node_shift > 0
    }
}

impl Workload {
    /// Whose files each phase of a rank works on.
    pub fn whose(&self, neighbours: &Neighbours, rank: u32) -> Vec<RankShift> {
        self.phases.iter().map(|phase| neighbours.of(phase, rank)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Stop;
    use proptest::prelude::*;

    fn phase(rank_shift: u32, node_shift: u32) -> Phase {
        Phase { rank_shift, node_shift, ..Phase::new("p", Vec::new(), Stop::default()) }
    }

    fn all(nodes: &[u32], phase: &Phase) -> Vec<u32> {
        let neighbours = Neighbours::on(nodes);
        (0..nodes.len() as u32).map(|rank| neighbours.of(phase, rank).of).collect()
    }

    #[test]
    fn a_shift_by_nodes_reaches_another_node() {
        let next = phase(0, 1);
        assert_eq!(all(&[7, 7, 5, 5, 6, 6], &next), [2, 3, 4, 5, 0, 1], "ranks of a node one after the other");
        assert_eq!(all(&[0, 1, 2, 0, 1, 2], &next), [1, 2, 0, 4, 5, 3], "or in turns");
        assert_eq!(all(&[0, 0, 0], &next), [1, 2, 0], "on one node: another rank");
        assert_eq!(all(&[0, 0, 1, 1], &phase(0, 2)), [0, 1, 2, 3], "once around");
        assert_eq!(all(&[0, 0, 1, 1], &phase(1, 0)), [1, 2, 3, 0]);
        assert_eq!(all(&[0, 0, 1], &next), [2, 0, 1], "three of a node cannot all leave it for one");
        assert_eq!(all(&[0], &next), [0]);
    }

    proptest! {
        #[test]
        fn everybody_works_on_the_files_of_one_and_knows_who_has_its_own(
            nodes in prop::collection::vec(0u32..5, 1..40), ranks in 0u32..50, by_node in 0u32..9,
        ) {
            let neighbours = Neighbours::on(&nodes);
            let phase = phase(ranks, by_node);
            let mut taken = vec![false; nodes.len()];
            for rank in 0..nodes.len() as u32 {
                let whose = neighbours.of(&phase, rank);
                prop_assert!(!std::mem::replace(&mut taken[whose.of as usize], true));
                prop_assert_eq!(neighbours.of(&phase, whose.of).by, rank);
                prop_assert_eq!(neighbours.of(&phase, whose.by).of, rank);
            }
        }

        #[test]
        fn nodes_of_one_size_never_read_their_own(count in 2u32..6, each in 1u32..8, seed in any::<u64>()) {
            // Shuffled by a step that has no factor with their number.
            let ranks = u64::from(count * each);
            let step = (seed % ranks..).find(|step| num_gcd(*step, ranks) == 1).expect("there is one");
            let nodes: Vec<u32> = (0..ranks).map(|rank| (rank * step % ranks) as u32 % count).collect();
            for shift in 1..count {
                for (rank, of) in all(&nodes, &phase(0, shift)).into_iter().enumerate() {
                    prop_assert_ne!(nodes[rank], nodes[of as usize]);
                }
            }
        }
    }

    fn num_gcd(one: u64, other: u64) -> u64 {
        if other == 0 { one } else { num_gcd(other, one % other) }
    }
}
