//! The interface of what carries messages between ranks.

/// Carries messages between the processes of a load. All calls are made by one thread, and none of them waits.
///
/// Messages from one rank to another arrive in their order. What is sent to a rank that died is lost, which is no error.
pub trait Transport {
    /// This process, from 0.
    fn rank(&self) -> u32;
    fn size(&self) -> u32;
    fn send(&mut self, to: u32, message: Vec<u8>);
    fn receive(&mut self) -> Option<(u32, Vec<u8>)>;
    /// Whether everything that was sent is on its way, so that this process could end.
    fn idle(&mut self) -> bool;
    /// Ends it, where all processes do.
    fn finish(self);
    /// Ends all processes with this status, where some cannot be waited for.
    fn abort(self, status: u8);
}
