//! Values on their way into the file and out of it.

use crate::{ReadError, RecordError};
use serde::{Serialize, de::DeserializeOwned};
use std::io::Read;

/// Longest JSON document of one value. A load of a week at one point a second has some 600,000 points of a few
/// hundred bytes; what is longer is a mistake, or a compressed bomb in a store that came from elsewhere.
pub(crate) const JSON_LIMIT: u64 = 512 << 20;

/// zstd's own default: on load reports higher levels take several times as long for a few percent.
const COMPRESSION_LEVEL: i32 = 3;

/// SQLite's integers are signed.
pub(crate) fn integer(what: &'static str, value: u64) -> Result<i64, RecordError> {
    i64::try_from(value).map_err(|_| RecordError::OutOfRange { what, value })
}

/// The JSON of a value that is certain to come back as it was.
///
/// JSON has no not-a-number and no infinity: serde_json writes both as `null`, and what was recorded could not be read
/// any more. So it is read back here, while the trial is still at hand, and not when it is gone.
pub(crate) fn json<T: Serialize + DeserializeOwned + PartialEq>(
    what: &'static str,
    value: &T,
) -> Result<String, RecordError> {
    let text = serde_json::to_string(value).map_err(|error| RecordError::NotJson { what, why: error.to_string() })?;
    if text.len() as u64 > JSON_LIMIT {
        return Err(RecordError::TooLong { what, bytes: text.len() as u64, limit: JSON_LIMIT });
    }
    match serde_json::from_str::<T>(&text) {
        Ok(read) if read == *value => Ok(text),
        Ok(_) => Err(RecordError::NotJson { what, why: "a number is not finite".into() }),
        Err(error) => Err(RecordError::NotJson { what, why: error.to_string() }),
    }
}

/// The value of a JSON text.
pub(crate) fn from_json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, ReadError> {
    serde_json::from_str(text).map_err(|error| ReadError::Damaged { what, why: error.to_string() })
}

/// zstd of a JSON text.
pub(crate) fn compress(json: &str) -> Result<Vec<u8>, RecordError> {
    zstd::encode_all(json.as_bytes(), COMPRESSION_LEVEL)
        .map_err(|error| RecordError::NotJson { what: "a load report", why: error.to_string() })
}

/// The JSON text of [`compress`], bounded by [`JSON_LIMIT`].
pub(crate) fn decompress(what: &'static str, blob: &[u8]) -> Result<String, ReadError> {
    let damaged = |why: String| ReadError::Damaged { what, why };
    let decoder = zstd::Decoder::new(blob).map_err(|error| damaged(error.to_string()))?;
    let mut text = String::new();
    let read = decoder.take(JSON_LIMIT + 1).read_to_string(&mut text).map_err(|error| damaged(error.to_string()))?;
    if read as u64 > JSON_LIMIT {
        return Err(damaged(format!("it is longer than {JSON_LIMIT} bytes")));
    }
    Ok(text)
}

/// The word of an enum without fields, as it is serialised ("bytes-per-second").
pub(crate) fn word<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("an enum without fields is serialised as a string, not as {other:?}"),
    }
}

/// The enum that has this word.
pub(crate) fn from_word<T: DeserializeOwned>(what: &'static str, word: &str) -> Result<T, ReadError> {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
        .map_err(|error| ReadError::Damaged { what, why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_would_lose_is_refused() {
        assert_eq!(json("numbers", &vec![1.0, -0.1]).expect("finite"), "[1.0,-0.1]");
        for lost in [f64::NAN, f64::INFINITY] {
            assert!(matches!(json("numbers", &vec![lost]), Err(RecordError::NotJson { .. })));
            assert!(matches!(json("a number", &Some(lost)), Err(RecordError::NotJson { .. })));
        }
    }

    #[test]
    fn compressed_text_comes_back_and_rubbish_is_an_error() {
        let blob = compress("{\"a\": 1}").expect("compressed");
        assert_eq!(decompress("it", &blob).expect("decompressed"), "{\"a\": 1}");
        assert!(decompress("it", &blob[..blob.len() - 3]).is_err());
        assert!(decompress("it", b"rubbish").is_err());
        assert!(decompress("it", &compress_bytes(&[0xff, 0xfe])).is_err(), "not UTF-8");
    }

    fn compress_bytes(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, COMPRESSION_LEVEL).expect("compressed")
    }
}
