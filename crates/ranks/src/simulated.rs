//! Ranks without MPI: threads of one process, with channels between them. For tests, for trying
//! out what many ranks cost, and for a load that is the only rank of its own.

use crate::Transport;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

type Letter = (u32, Vec<u8>);

#[derive(Debug)]
pub struct Simulated {
    rank: u32,
    peers: Arc<[Sender<Letter>]>,
    inbox: Receiver<Letter>,
}

pub fn world(size: u32) -> Vec<Simulated> {
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
    let peers: Arc<[_]> = peers.into();
    (0..size).zip(inboxes).map(|(rank, inbox)| Simulated { rank, peers: Arc::clone(&peers), inbox }).collect()
}

impl Transport for Simulated {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        u32::try_from(self.peers.len()).unwrap_or(u32::MAX)
    }

    fn send(&mut self, to: u32, message: Vec<u8>) {
        // A rank that is gone takes nothing.
        let _ = self.peers[to as usize].send((self.rank, message));
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        self.inbox.try_recv().ok()
    }

    fn idle(&mut self) -> bool {
        true
    }

    fn finish(self) {}

    fn abort(self, _status: u8) {}
}
