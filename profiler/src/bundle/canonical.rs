//! The form of a model file for its checksum.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of a file's content in hexadecimal digits. The content is
/// everything but the checksum, as JSON with sorted keys and no blanks.
pub(super) fn checksum(content: &Value) -> String {
    // Objects of `serde_json` are sorted maps.
    let digest = Sha256::digest(content.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        checksum(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn order_and_blanks_do_not_matter_and_values_do() {
        let plain = of(r#"{"a":[1,0.1],"b":{"c":null,"d":"x"}}"#);
        assert_eq!(
            plain,
            of(r#" {"b": {"d": "x", "c": null}, "a": [1, 1e-1]} "#)
        );
        for other in [
            r#"{"a":[1,0.2],"b":{"c":null,"d":"x"}}"#,
            r#"{"a":[0.1,1],"b":{"c":null,"d":"x"}}"#,
            r#"{"a":[1,0.1],"b":{"c":null,"d":"X"}}"#,
            r#"{"a":[1,0.1],"b":{"d":"x"}}"#,
        ] {
            assert_ne!(plain, of(other), "{other}");
        }
    }

    #[test]
    fn it_is_sha_256_of_the_compact_form() {
        // printf '{"a":1,"b":2}' | sha256sum
        assert_eq!(
            of("{\"b\": 2, \"a\": 1}"),
            "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
        );
    }
}
