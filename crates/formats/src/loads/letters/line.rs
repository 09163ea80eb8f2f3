//! A command line as words, each with its place.

use crate::{Source, Span};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word, without quotes around it.
    pub text: String,
    /// Where it stands, quotes included.
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct CommandLine {
    pub source: Source,
    /// Its words, without the program's name.
    pub words: Vec<Word>,
}

impl CommandLine {
    pub fn of_arguments(arguments: &[String]) -> Self {
        let mut start = 0;
        let mut words = Vec::new();
        for text in arguments {
            words.push(Word { text: text.clone(), span: Span::new(start, start + text.len()) });
            start += text.len() + 1;
        }
        Self { source: Source::new("command line", arguments.join(" ")), words }
    }

    /// As a file has it: words with white space between them, over as many lines as they need (a backslash at the end of a line may say so),
    /// in quotes where they have white space themselves; `#` begins a comment. What stands before the program's name, and the name itself, does
    /// not count: a line may be copied from a script as it is, launcher and all.
    pub fn of_text(source: &Source, program: &str) -> Self {
        let mut words = words(source.text());
        let is_program = |word: &Word| word.text.rsplit('/').next() == Some(program);
        if let Some(place) = words.iter().position(is_program) {
            words.drain(..=place);
        }
        Self { source: source.clone(), words }
    }
}

/// Adds a character to the word that is being read, or begins one here.
fn add(word: &mut Option<(usize, String)>, at: usize, character: Option<char>) {
    word.get_or_insert_with(|| (at, String::new())).1.extend(character);
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<(usize, String)> = None;
    let mut quote = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => add(&mut word, at, Some(character)),
            ('\'' | '"', None) => {
                add(&mut word, at, None);
                quote = Some(character);
            }
            ('\\', None) if characters.peek().is_some_and(|(_, next)| matches!(next, '\n' | '\r')) => {}
            ('#', None) if word.is_none() => while characters.next_if(|(_, next)| *next != '\n').is_some() {},
            (_, None) if character.is_whitespace() => {
                words.extend(word.take().map(|(start, text)| Word { text, span: Span::new(start, at) }));
            }
            (_, None) => add(&mut word, at, Some(character)),
        }
    }
    words.extend(word.map(|(start, word)| Word { text: word, span: Span::new(start, text.len()) }));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_words_with_their_places() {
        let text = "# easy\nmpirun -n 4 /opt/bin/mdtest -n 10 \\\n  -d '/mnt/a b' # end\n-F";
        let line = CommandLine::of_text(&Source::new("easy.mdtest", text), "mdtest");
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(words, ["-n", "10", "-d", "/mnt/a b", "-F"]);
        for word in &line.words {
            assert!(text[word.span.start..word.span.end].contains(&word.text), "{word:?}");
        }
        assert_eq!(line.source.position(line.words[2].span.start), (3, 3));
        let bare = CommandLine::of_text(&Source::new("x", "-n 10"), "mdtest");
        assert_eq!(bare.words.len(), 2);
    }
}
