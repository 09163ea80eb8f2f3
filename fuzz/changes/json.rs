//! A JSON document that can be changed quickly: the text is written once, and where each of its values stands in it is
//! known, so that a change is a splice and costs neither a tree nor a serialisation.

use serde_json::Value;
use std::ops::Range;

/// A JSON text and its values.
pub(crate) struct Document {
    text: String,
    nodes: Vec<Node>,
    /// Nodes of each kind, by [`Kind`] as an index.
    of_kind: [Vec<usize>; 4],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// `null`, `true`, `false`.
    Word,
    /// An array or an object.
    Container,
}

struct Node {
    at: Range<usize>,
    kind: Kind,
    /// Where the items of an array or the members of an object stand.
    items: Vec<Range<usize>>,
}

/// A value that takes the place of another.
pub(crate) struct Edit {
    at: Range<usize>,
    with: String,
}

/// Numbers at which arithmetic breaks.
const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "-0.0",
    "127",
    "255",
    "65536",
    "4294967295",
    "1000000000000",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "2305843009213693951",
    "1e300",
    "-1e300",
    "5e-324",
    "1e-9",
    "1.7976931348623157e308",
];

/// Texts that mean something to a terminal, a page, a table or this program, as JSON.
const TEXTS: [&str; 32] = [
    r#""""#,
    r#"" ""#,
    r#""\u001b[2J""#,
    r#""</script><script>""#,
    r#""a,b\"c\n""#,
    r#""\u202ertl""#,
    r#""=1+1""#,
    r#""|a|b|""#,
    r#""load""#,
    r#""fsck""#,
    r#""CPU""#,
    r#""time""#,
    r#""transactions per second""#,
    r#""seconds""#,
    r#""bytes""#,
    r#""bytes-per-second""#,
    r#""per-second""#,
    r#""percent""#,
    r#""count""#,
    r#""ratio""#,
    r#""higher""#,
    r#""lower""#,
    r#""completed""#,
    r#""refused""#,
    r#""hung""#,
    r#""host""#,
    r#""uml:6.1""#,
    r#""ext4""#,
    r#""../../etc/passwd""#,
    r#""/dev/sda""#,
    r#""NaN""#,
    r#""-inf""#,
];

const WORDS: [&str; 3] = ["null", "true", "false"];

impl Document {
    pub(crate) fn of(value: &Value) -> Self {
        let mut document =
            Self { text: String::new(), nodes: Vec::new(), of_kind: [const { Vec::new() }; 4] };
        document.write(value);
        for (index, node) in document.nodes.iter().enumerate() {
            document.of_kind[node.kind as usize].push(index);
        }
        document
    }

    /// How many values there are, each within another one counted too.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Appends a value; its node comes before those in it.
    fn write(&mut self, value: &Value) {
        let (start, index) = (self.text.len(), self.nodes.len());
        self.nodes.push(Node { at: start..start, kind: Kind::Container, items: Vec::new() });
        let mut items = Vec::new();
        let kind = match value {
            Value::Array(values) => {
                self.text.push('[');
                for (number, value) in values.iter().enumerate() {
                    self.separate(number);
                    let item = self.text.len();
                    self.write(value);
                    items.push(item..self.text.len());
                }
                self.text.push(']');
                Kind::Container
            }
            Value::Object(fields) => {
                self.text.push('{');
                for (number, (name, value)) in fields.iter().enumerate() {
                    self.separate(number);
                    let item = self.text.len();
                    self.text.push_str(&Value::from(name.as_str()).to_string());
                    self.text.push(':');
                    self.write(value);
                    items.push(item..self.text.len());
                }
                self.text.push('}');
                Kind::Container
            }
            plain => {
                self.text.push_str(&plain.to_string());
                match plain {
                    Value::String(_) => Kind::Text,
                    Value::Number(_) => Kind::Number,
                    _ => Kind::Word,
                }
            }
        };
        self.nodes[index] = Node { at: start..self.text.len(), kind, items };
    }

    fn separate(&mut self, number: usize) {
        if number > 0 {
            self.text.push(',');
        }
    }

    /// The change that six bytes make to the node with this number: a value of the same kind takes its place, or, for one
    /// `what` of 16, a value of any kind.
    pub(crate) fn edit(&self, node: usize, what: u8, operand: u32) -> Edit {
        let node = &self.nodes[node];
        let kind = match what >> 4 {
            0 => [Kind::Text, Kind::Number, Kind::Word, Kind::Container][operand as usize % 4],
            _ => node.kind,
        };
        let with = match kind {
            Kind::Number => self.number(what, operand),
            Kind::Text => self.string(what, operand),
            Kind::Word => WORDS[operand as usize % WORDS.len()].to_owned(),
            Kind::Container if node.kind == Kind::Container => self.rearranged(node, what, operand),
            Kind::Container => "[]".to_owned(),
        };
        Edit { at: node.at.clone(), with }
    }

    fn number(&self, what: u8, operand: u32) -> String {
        match what % 4 {
            0 => NUMBERS[operand as usize % NUMBERS.len()].to_owned(),
            1 => operand.to_string(),
            2 => (u64::MAX >> (operand % 64)).to_string(),
            _ => self.another(Kind::Number, operand),
        }
    }

    fn string(&self, what: u8, operand: u32) -> String {
        match what % 8 {
            0..4 => TEXTS[operand as usize % TEXTS.len()].to_owned(),
            4 => format!("\"{}\"", "x".repeat(operand as usize % 600)),
            _ => self.another(Kind::Text, operand),
        }
    }

    /// An array or object with an item less, or one twice, or two in each other's place, or another one of this document.
    fn rearranged(&self, node: &Node, what: u8, operand: u32) -> String {
        let mut items: Vec<&str> = node.items.iter().map(|at| &self.text[at.clone()]).collect();
        let place = |operand: u32| operand as usize % items.len().max(1);
        let (first, second) = (place(operand), place(operand >> 16));
        match what % 4 {
            _ if items.is_empty() => return self.another(Kind::Container, operand),
            0 => drop(items.remove(first)),
            1 => items.push(items[first]),
            2 => items.swap(first, second),
            _ => return self.another(Kind::Container, operand),
        }
        let [open, close] = match self.text.as_bytes()[node.at.start] {
            b'[' => ['[', ']'],
            _ => ['{', '}'],
        };
        format!("{open}{}{close}", items.join(","))
    }

    /// A value of this kind from elsewhere in the document.
    fn another(&self, kind: Kind, operand: u32) -> String {
        let of_kind = &self.of_kind[kind as usize];
        of_kind.get(operand as usize % of_kind.len().max(1)).map_or_else(String::new, |node| {
            // What is larger would only be the document in itself.
            let text = &self.text[self.nodes[*node].at.clone()];
            if text.len() > 2000 { "null".to_owned() } else { text.to_owned() }
        })
    }

    /// The text with these edits; of two that overlap, the one that begins later is left out.
    pub(crate) fn with(&self, edits: &mut Vec<Edit>) -> String {
        edits.sort_by_key(|edit| edit.at.start);
        let (mut text, mut done) = (String::with_capacity(self.text.len() + 64), 0);
        for edit in edits.iter() {
            if edit.at.start >= done {
                text.push_str(&self.text[done..edit.at.start]);
                text.push_str(&edit.with);
                done = edit.at.end;
            }
        }
        text.push_str(&self.text[done..]);
        text
    }
}
