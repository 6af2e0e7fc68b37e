//! Which partition an id belongs to: CRC16-XMODEM, Redis Cluster's own (PROTOCOL.md section 1).

use crc::{CRC_16_XMODEM, Crc};

const CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The most partitions a queue may have.
pub const MAX_PARTITIONS: u32 = 1024;

/// The partition of `id` in a queue of `partitions` (at least 1).
#[must_use]
pub fn of(id: &[u8], partitions: u32) -> u32 {
    u32::from(CRC16.checksum(id)) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same vectors stand in docs/PROTOCOL.md for clients in other languages.
    #[test]
    fn crc16_vectors() {
        let crc = |id: &[u8]| of(id, 65_536);
        assert_eq!(crc(b"123456789"), 0x31c3);
        assert_eq!(crc(b""), 0);
        assert_eq!(of(b"order-1001", 4), crc(b"order-1001") % 4);
        assert_eq!(of(b"anything", 1), 0);
        assert_eq!(of(b"anything", 0), 0);
    }
}
