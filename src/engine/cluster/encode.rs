//! Messages as bytes: the length of the words, the words as JSON, and the data.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ClusterError;
use pdawl_core::cluster::wire::memory;

/// Bytes of the length.
const LENGTH: usize = size_of::<u32>();

/// A message without data. Data may be appended.
pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = vec![0; LENGTH];
    serde_json::to_writer(&mut bytes, message)?;
    let length = (bytes.len() - LENGTH) as u32;
    bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// A message with room for so many bytes of data, which have any contents, and where these
/// begin.
///
/// # Errors
/// What cannot be encoded, and data for which the system has no memory.
pub(super) fn with_room(
    message: &impl Serialize,
    data: u64,
) -> Result<(Vec<u8>, usize), ClusterError> {
    let words = encode(message)?;
    let at = words.len();
    let bytes = usize::try_from(data)
        .ok()
        .and_then(|data| at.checked_add(data));
    let mut whole = bytes
        .and_then(memory::room)
        .ok_or(ClusterError::NoMemory { bytes: data })?;
    whole[..at].copy_from_slice(&words);
    Ok((whole, at))
}

/// A message, and where its data begin. `None` if these bytes are none.
pub(super) fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Option<(M, usize)> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let message = serde_json::from_slice(rest.get(..length)?).ok()?;
    Some((message, LENGTH + length))
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::Serializer;
    use serde_json::ser::Formatter;

    use super::*;
    use crate::balance::bands::Pace;
    use crate::verify::Checked;
    use crate::verify::checked::FactorFigures;
    use pdawl_core::cluster::info::{DeviceInfo, NodeInfo};
    use pdawl_core::cluster::protocol::{Message, RequestId};
    use pdawl_core::cluster::record::{DevicePart, NodeRecord};
    use pdawl_core::cluster::space::{Block, SpaceBlock, SpaceId};
    use pdawl_core::cluster::task::TaskId;
    use pdawl_core::cluster::task::chain::Source;

    #[test]
    fn a_message_and_its_data_come_back() {
        let part = SpaceBlock {
            space: SpaceId(3),
            block: Block::new(0..u64::MAX, 5..7),
        };
        let message = Message::Fetch {
            task: TaskId(4),
            request: RequestId(u64::MAX),
            sources: vec![Source::before(part)],
        };
        let mut bytes = encode(&message).expect("it has words");
        bytes.extend([1, 2, 3]);
        let (decoded, at) = decode(&bytes).expect("it is a message");
        assert_eq!((decoded, &bytes[at..]), (message, &[1, 2, 3][..]));
    }

    /// JSON has no number that is not finite.
    struct NoFloats;

    impl Formatter for NoFloats {
        fn write_f64<W: ?Sized + io::Write>(&mut self, _to: &mut W, _of: f64) -> io::Result<()> {
            Err(io::Error::other(
                "a message has a float without `#[serde(with = \"crate::exact\")]`",
            ))
        }
    }

    /// All messages with floats, each of which is this one.
    fn of_float(number: f64) -> Vec<Message> {
        let device = DeviceInfo {
            name: "device".into(),
            flops: number,
            memory_bandwidth: number,
            link_bandwidth: number,
            depth: 1,
        };
        let info = NodeInfo {
            name: "node".into(),
            devices: vec![device],
            memory: 1 << 34,
        };
        let record = NodeRecord {
            busy_seconds: number,
            idle_seconds: number,
            devices: vec![DevicePart {
                seconds: number,
                ..DevicePart::default()
            }],
            checked: Some(Checked {
                worst: number,
                factors: Some(FactorFigures {
                    residual: number,
                    growth: number,
                }),
                ..Checked::default()
            }),
            ..NodeRecord::default()
        };
        let pace = Pace {
            seconds: number,
            set_up: number,
        };
        let (attempt, round) = (0, 0);
        vec![
            Message::Hello {
                program: "p".to_owned(),
                info: info.clone(),
            },
            Message::Welcome {
                nodes: vec![info].into(),
            },
            Message::Summary {
                attempt,
                record: Box::new(record),
            },
            Message::Pace {
                attempt,
                round,
                pace,
            },
        ]
    }

    #[test]
    fn every_float_comes_back_bit_for_bit() {
        let odd = [0x7ff8_0000_0000_0123, 0xfff0_0000_0000_0001, 1, 1 << 63].map(f64::from_bits);
        let infinite = [f64::INFINITY, f64::NEG_INFINITY];
        let plain = [0.1, f64::MAX, f64::MIN_POSITIVE, -1e-300];
        for number in odd.into_iter().chain(infinite).chain(plain) {
            for message in of_float(number) {
                let bytes = encode(&message).expect("it has words");
                let (decoded, _) = decode::<Message>(&bytes).expect("it is a message");
                // NaN is unlike itself, and its bits are not.
                assert_eq!(encode(&decoded).expect("it has words"), bytes, "{number}");
            }
        }
        for message in of_float(0.5) {
            let mut json = Serializer::with_formatter(Vec::new(), NoFloats);
            message.serialize(&mut json).expect("all floats are exact");
        }
    }

    #[test]
    fn other_bytes_are_no_message() {
        for bytes in [
            &[][..],
            &[1, 0],
            &[200, 0, 0, 0, b'{'],
            &[2, 0, 0, 0, b'{', b'}'],
        ] {
            assert!(decode::<Message>(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn changed_messages_are_decoded_or_refused() {
        let part = SpaceBlock {
            space: SpaceId(3),
            block: Block::new(0..9, 5..7),
        };
        let message = Message::Fetch {
            task: TaskId(4),
            request: RequestId(7),
            sources: vec![Source::before(part.clone()), Source::before(part)],
        };
        let bytes = encode(&message).expect("it has words");
        let words = ["{", "[", "\"Fetch\":", "null", "\0\0", "\"sources\""];
        crate::changed::changed(&[&bytes], &words, |bytes| {
            // The length may be wrong as well as the words behind it.
            let whole = bytes.get(LENGTH..).unwrap_or_default();
            let right = [&(whole.len() as u32).to_le_bytes(), whole].concat();
            for bytes in [bytes, &right] {
                if let Some((_, at)) = decode::<Message>(bytes) {
                    assert!(at <= bytes.len());
                }
            }
        });
    }
}
