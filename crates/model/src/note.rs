//! What a user says about a run.

use crate::text::visible;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest note, in characters: it stands beside its run in lists.
pub const NOTE_CHARACTERS: usize = 200;

/// One line about a run in its user's words: "before the patch". It has no leading or trailing space and no characters that act on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Note(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// It is empty or only white space.
    #[error("a note cannot be empty")]
    Empty,
    #[error("a note has at most {NOTE_CHARACTERS} characters, and this one has {characters}")]
    TooLong { characters: usize },
    /// A line end, a tab, or another character that acts on a terminal or on the order of text.
    #[error("a note is one line without control characters, and this one has U+{:04X}", u32::from(*.character))]
    Control { character: char },
}

impl Note {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for Note {
    type Error = NoteError;

    fn try_from(text: String) -> Result<Self, NoteError> {
        let text = text.trim();
        let characters = text.chars().count();
        match text.chars().find(|c| visible(*c) != *c) {
            _ if text.is_empty() => Err(NoteError::Empty),
            Some(character) => Err(NoteError::Control { character }),
            None if characters > NOTE_CHARACTERS => Err(NoteError::TooLong { characters }),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_short_line() {
        let note = |text: &str| Note::try_from(text.to_owned());
        assert_eq!(note("  before the patch\n").expect("a line").as_str(), "before the patch");
        assert_eq!(note(&"ü".repeat(NOTE_CHARACTERS)).expect("as long as it may be").as_str().chars().count(), 200);
        assert_eq!(note(" \t "), Err(NoteError::Empty));
        let told = note(&"x".repeat(201)).expect_err("one too many").to_string();
        assert_eq!(told, "a note has at most 200 characters, and this one has 201");
        for (text, code) in [("a\nb", "U+000A"), ("a\tb", "U+0009"), ("\u{1b}[2J", "U+001B"), ("a\u{202e}b", "U+202E")]
        {
            let told = note(text).expect_err(code).to_string();
            assert!(told.ends_with(code), "{told}");
        }
        assert!(serde_json::from_str::<Note>("\"a\\nb\"").is_err(), "nor does one come in from elsewhere");
    }
}
