//! Values on their way into the file and out of it.

use crate::{ReadError, RecordError};
use serde::{Serialize, de::DeserializeOwned};

/// Longest JSON document of one value. A load of a week at one point a second has some 600,000 points of a few
/// hundred bytes; anything longer is a mistake, or a decompression bomb in a store from outside.
pub(crate) const JSON_LIMIT: u64 = 512 << 20;

/// zstd's own default: on load reports higher levels take several times as long for a few percent.
const COMPRESSION_LEVEL: i32 = 3;

/// SQLite's integers are signed.
pub(crate) fn integer(what: &'static str, value: u64) -> Result<i64, RecordError> {
    i64::try_from(value).map_err(|_| RecordError::OutOfRange { what, value })
}

/// The JSON of a value that is certain to come back as it was.
///
/// JSON has neither NaN nor infinity: serde_json writes both as `null`, and the record could not be read
/// again. So it is read back here, while the trial is still at hand.
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

pub(crate) fn from_json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, ReadError> {
    serde_json::from_str(text).map_err(|error| ReadError::Damaged { what, why: error.to_string() })
}

pub(crate) fn compress(json: &str) -> Result<Vec<u8>, RecordError> {
    zstd::encode_all(json.as_bytes(), COMPRESSION_LEVEL)
        .map_err(|error| RecordError::NotJson { what: "a load report", why: error.to_string() })
}

/// Decompresses the JSON texts of [`compress`], each into the same memory as the one before.
pub(crate) struct Decompressor {
    context: zstd::bulk::Decompressor<'static>,
    text: Vec<u8>,
}

impl Decompressor {
    pub(crate) fn new() -> Self {
        Self { context: zstd::bulk::Decompressor::new().expect("no dictionary that could be wrong"), text: Vec::new() }
    }

    /// `bytes`: how long the text is, at most [`JSON_LIMIT`].
    pub(crate) fn decompress(&mut self, what: &'static str, blob: &[u8], bytes: u64) -> Result<&str, ReadError> {
        let damaged = |why: String| ReadError::Damaged { what, why };
        if bytes > JSON_LIMIT {
            return Err(damaged(format!("it is longer than {JSON_LIMIT} bytes")));
        }
        self.text.clear();
        self.text.reserve(bytes as usize);
        self.context.decompress_to_buffer(blob, &mut self.text).map_err(|error| damaged(error.to_string()))?;
        std::str::from_utf8(&self.text).map_err(|error| damaged(error.to_string()))
    }
}

/// The word of an enum without fields, as it is serialised ("bytes-per-second").
pub(crate) fn word<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("an enum without fields is serialised as a string, not as {other:?}"),
    }
}

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
        let mut decompressor = Decompressor::new();
        let mut decompress = |blob: &[u8], bytes: u64| decompressor.decompress("it", blob, bytes).map(str::to_owned);
        let (short, long) = ("{\"a\": 1}", format!("[{}1]", "1, ".repeat(10_000)));
        let blob = compress(short).expect("compressed");
        assert_eq!(decompress(&blob, short.len() as u64).expect("decompressed"), short);
        let of_long = compress(&long).expect("compressed");
        assert_eq!(decompress(&of_long, long.len() as u64).expect("decompressed"), long);
        assert_eq!(decompress(&blob, short.len() as u64).expect("after a longer one"), short);
        assert!(decompress(&blob[..blob.len() - 3], short.len() as u64).is_err());
        assert!(decompress(b"rubbish", 100).is_err());
        assert!(decompress(&blob, JSON_LIMIT + 1).is_err(), "longer than anything here");
        assert!(Decompressor::new().decompress("it", &of_long, 100).is_err(), "longer than it is said to be");
        assert!(decompress(&compress_bytes(&[0xff, 0xfe]), 2).is_err(), "not UTF-8");
    }

    fn compress_bytes(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, COMPRESSION_LEVEL).expect("compressed")
    }
}
