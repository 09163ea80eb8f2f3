//! Changes to a text of lines and words that leave most of it whole.

use std::{ops::Range, sync::LazyLock};

/// The words of this text, and what numbers and texts go wrong with, are put in each other's place.
static BASE: &str = include_str!("../base/study.toml");

const WORDS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "1000",
    "10000",
    "18446744073709551615",
    "9223372036854775808",
    "1e300",
    "0.1",
    "nan",
    "true",
    "\"\"",
    "\"\\u001b[2J\"",
    "\"0 s\"",
    "\"1 ns\"",
    "\"16 EiB\"",
    "\"100 %\"",
    "\"../../etc/passwd\"",
    "\"/dev/sda\"",
    "\"{source:100}\"",
    "\"{\"",
    "\"uml:9.9\"",
    "\"exact:x\"",
    "[]",
];

struct Base {
    lines: Vec<&'static str>,
    /// Words of each line.
    words: Vec<Vec<Range<usize>>>,
    /// All words there are.
    vocabulary: Vec<&'static str>,
}

static PARTS: LazyLock<Base> = LazyLock::new(|| {
    let lines: Vec<&str> = BASE.lines().collect();
    let words: Vec<_> = lines.iter().map(|line| words(line)).collect();
    let of_lines = lines.iter().zip(&words).flat_map(|(line, words)| words.iter().map(|at| &line[at.clone()]));
    let vocabulary = of_lines.chain(WORDS).collect();
    Base { lines, words, vocabulary }
});

/// Bytes of one change.
const CHANGE: usize = 4;

/// The base text with the changes that these bytes make, four each: which line, what is done to it, and with what.
pub(crate) fn changed(input: &[u8]) -> String {
    let base = &*PARTS;
    let mut lines: Vec<Option<String>> = vec![None; base.lines.len()];
    let mut order: Vec<usize> = (0..base.lines.len()).collect();
    for change in input.chunks_exact(CHANGE) {
        let [at, what, operand, place] = change.try_into().expect("four bytes");
        let at = usize::from(at) % base.lines.len();
        let operand = usize::from(operand) | usize::from(what & 0xf0) << 4;
        match what % 16 {
            0 => order.retain(|line| *line != at),
            1 => order.insert(operand % (order.len() + 1), at),
            2 => {
                let other = operand % base.lines.len();
                order.iter_mut().for_each(|line| *line = if *line == at { other } else { *line });
            }
            _ => {
                if let Some(word) = base.words[at].get(usize::from(place) % base.words[at].len().max(1))
                    && lines[at].is_none()
                {
                    let (line, with) = (base.lines[at], base.vocabulary[operand % base.vocabulary.len()]);
                    lines[at] = Some([&line[..word.start], with, &line[word.end..]].concat());
                }
            }
        }
    }
    let texts = order.into_iter().map(|line| lines[line].as_deref().unwrap_or(base.lines[line]));
    texts.flat_map(|line| [line, "\n"]).collect()
}

/// Quoted texts, and what is between spaces and punctuation.
fn words(line: &str) -> Vec<Range<usize>> {
    let (mut words, mut start, mut quoted) = (Vec::new(), None::<usize>, false);
    for (at, character) in line.char_indices() {
        match (character, start) {
            ('"', None) => (start, quoted) = (Some(at), true),
            ('"', Some(begun)) if quoted => {
                words.push(begun..at + 1);
                (start, quoted) = (None, false);
            }
            (_, Some(_)) if quoted => {}
            (' ' | ',' | '[' | ']' | '{' | '}' | '=', Some(begun)) => {
                words.push(begun..at);
                start = None;
            }
            (' ' | ',' | '[' | ']' | '{' | '}' | '=', None) => {}
            (_, None) => start = Some(at),
            _ => {}
        }
    }
    words.extend(start.map(|begun| begun..line.len()));
    words
}
