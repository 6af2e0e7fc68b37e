//! What a run of a consumer did.

/// How many timeouts a consumer handled, by what became of them. Every handled timeout is in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Done and acknowledged.
    pub done: u64,
    /// To be tried again.
    pub retried: u64,
    /// Rejected by the handler, or of a payload that could not be decoded: dead letters.
    pub rejected: u64,
    /// Failed at their last attempt: dead letters.
    pub exhausted: u64,
    /// Not entries that can be read: dead letters.
    pub malformed: u64,
    /// Their lease was lost, or another consumer finished them first; their outcome changed nothing.
    pub lost: u64,
    /// Handed back unfinished at the end.
    pub released: u64,
    /// To be tried again later at the same attempt, as the handler asked.
    pub postponed: u64,
    /// Handed back at the same attempt: what the handler works with was down or halted.
    pub unreachable: u64,
    /// Three holders died while they ran alone: dead letters.
    pub deaths: u64,
    /// Acknowledged, but not all of their effects could be applied: dead letters.
    pub incomplete: u64,
    /// Addressed to another group: passed over unseen.
    pub passed: u64,
    /// Taken over from consumers whose lease ran out. Each is in one of the numbers above too.
    pub claimed: u64,
    /// Still not settled when the last deadline ended; another consumer gets them after the lease.
    pub unsettled: u64,
}
