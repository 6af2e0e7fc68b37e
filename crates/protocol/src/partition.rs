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

/// The hash slot of `key` in a Redis Cluster, 0 to 16383: of its hash tag, when it has one.
#[must_use]
pub fn slot(key: &[u8]) -> u16 {
    let position = |bytes: &[u8], wanted| bytes.iter().position(|&b| b == wanted);
    let tag = position(key, b'{').and_then(|open| {
        let rest = &key[open + 1..];
        position(rest, b'}').filter(|&close| close > 0).map(|close| &rest[..close])
    });
    CRC16.checksum(tag.unwrap_or(key)) % 16_384
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

    /// As CLUSTER KEYSLOT answers.
    #[test]
    fn slots_are_of_the_tag() {
        assert_eq!((slot(b"123456789"), slot(b"foo{}{bar}"), slot(b"")), (12_739, 8_363, 0));
        assert_eq!((slot(b"foo{bar}{zap}"), slot(b"{bar}")), (slot(b"bar"), slot(b"bar")));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }
}
