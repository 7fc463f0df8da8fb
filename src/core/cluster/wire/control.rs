//! The messages that links send each other.

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// The sender lives.
    Beat,
    /// The sender ends, after this many data messages to the receiver.
    Done { messages: u64 },
    /// The sender has heard that all ranks end. It has lost none, or some.
    Leave { complete: bool },
    /// The sender takes the receiver for lost.
    Excluded,
    /// A question for the time.
    Ping,
    /// The time on the sender's clock, in nanoseconds.
    Pong { time: u64 },
    /// By rank, what [`super::Wire::clock_offset`] returns.
    Offsets(Vec<i64>),
}

const BEAT: u8 = 0;
const DONE: u8 = 1;
const EXCLUDED: u8 = 2;
const PING: u8 = 3;
const PONG: u8 = 4;
const OFFSETS: u8 = 5;
const LEAVE: u8 = 6;

impl Control {
    /// A byte for the kind, then numbers of 8 bytes, least significant byte first.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, numbers): (u8, Vec<[u8; 8]>) = match self {
            Self::Beat => (BEAT, Vec::new()),
            Self::Done { messages } => (DONE, vec![messages.to_le_bytes()]),
            Self::Leave { complete } => (LEAVE, vec![u64::from(*complete).to_le_bytes()]),
            Self::Excluded => (EXCLUDED, Vec::new()),
            Self::Ping => (PING, Vec::new()),
            Self::Pong { time } => (PONG, vec![time.to_le_bytes()]),
            Self::Offsets(all) => (OFFSETS, all.iter().map(|one| one.to_le_bytes()).collect()),
        };
        let mut bytes = vec![kind];
        bytes.extend(numbers.as_flattened());
        bytes
    }

    /// The message, or nothing if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&kind, numbers) = bytes.split_first()?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        let message = match (kind, numbers) {
            (BEAT, []) => Self::Beat,
            (DONE, &[messages]) => Self::Done {
                messages: u64::from_le_bytes(messages),
            },
            (LEAVE, &[complete]) => Self::Leave {
                complete: u64::from_le_bytes(complete) != 0,
            },
            (EXCLUDED, []) => Self::Excluded,
            (PING, []) => Self::Ping,
            (PONG, &[time]) => Self::Pong {
                time: u64::from_le_bytes(time),
            },
            (OFFSETS, all) => {
                Self::Offsets(all.iter().map(|one| i64::from_le_bytes(*one)).collect())
            }
            _ => return None,
        };
        rest.is_empty().then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let all = [
            Control::Beat,
            Control::Done { messages: 300 },
            Control::Leave { complete: true },
            Control::Leave { complete: false },
            Control::Excluded,
            Control::Ping,
            Control::Pong { time: u64::MAX - 7 },
            Control::Offsets(Vec::new()),
            Control::Offsets(vec![0, i64::MIN, 3]),
        ];
        for message in all {
            assert_eq!(Control::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut cut = Control::Pong { time: 1 }.encode();
        cut.pop();
        for bytes in [&[][..], &[99], &[BEAT, 0], &[PONG], &cut] {
            assert_eq!(Control::decode(bytes), None, "{bytes:?}");
        }
    }
}
