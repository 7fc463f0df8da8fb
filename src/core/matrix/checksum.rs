//! The checksum of a file's content: XXH3 with 128 bits, which takes less time than
//! reading the file. It detects changes, but not forgery.

use std::io::{self, Read};

use twox_hash::xxhash3_128::Hasher;

/// The checksum of bytes that are added piece by piece.
#[derive(Clone, Default)]
pub struct Checksum {
    hasher: Hasher,
    bytes: u64,
}

/// A number of bytes and their checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    pub bytes: u64,
    pub checksum: u128,
}

impl Checksum {
    pub fn add(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The digest of all bytes added.
    pub fn digest(&self) -> Digest {
        Digest {
            bytes: self.bytes,
            checksum: self.hasher.finish_128(),
        }
    }
}

/// A reader that computes the checksum of what it reads.
pub struct ChecksumReader<R> {
    reader: R,
    checksum: Checksum,
}

impl<R> ChecksumReader<R> {
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            checksum: Checksum::default(),
        }
    }

    /// The digest of all bytes read.
    pub fn digest(&self) -> Digest {
        self.checksum.digest()
    }

    /// The number of bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.checksum.bytes
    }
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.checksum.add(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_matter_and_every_byte_does() {
        let text: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let of = |text: &[u8], piece: usize| {
            let mut checksum = Checksum::default();
            text.chunks(piece).for_each(|piece| checksum.add(piece));
            checksum.digest()
        };
        let whole = of(&text, text.len());
        assert_eq!(whole.bytes, 100_000);
        assert_eq!(of(&text, 1), whole);
        assert_eq!(of(&text, 997), whole);
        let mut other = text.clone();
        other[77_777] ^= 1;
        assert_ne!(of(&other, 997).checksum, whole.checksum);
        assert_ne!(of(&text[..99_999], 997).checksum, whole.checksum);

        let mut summed = ChecksumReader::new(&text[..]);
        io::copy(&mut summed, &mut io::sink()).unwrap();
        assert_eq!((summed.digest(), summed.bytes_read()), (whole, 100_000));
    }
}
