//! The content of the files: C that compiles, headers that can be included, prose. About as compressible as source code.

use super::{
    draw::Draw,
    shape::{Kind, Planned},
};

const WORDS: &[&str] = &[
    "device",
    "register",
    "buffer",
    "queue",
    "page",
    "inode",
    "block",
    "request",
    "interrupt",
    "handler",
    "state",
    "flags",
    "lock",
    "context",
    "channel",
    "address",
    "offset",
    "length",
    "value",
    "status",
    "driver",
    "controller",
    "index",
    "count",
    "ring",
    "descriptor",
    "packet",
    "timer",
    "clock",
    "power",
    "bus",
    "port",
    "frame",
    "entry",
    "table",
    "cache",
    "node",
    "list",
    "mode",
    "config",
    "enable",
    "disable",
    "pending",
    "ready",
    "error",
    "result",
    "the",
    "of",
    "a",
    "is",
    "to",
    "and",
    "for",
    "this",
    "when",
    "not",
    "must",
    "be",
    "set",
    "in",
    "by",
    "with",
    "from",
];

/// The content of a file, of exactly its planned size.
pub(super) fn content(planned: &Planned, serial: u32, draw: &mut Draw) -> Vec<u8> {
    let size = planned.size_bytes;
    let mut text = String::with_capacity(size + 512);
    match planned.kind {
        Kind::C => {
            let entry = format!(
                "/* SPDX-License-Identifier: GPL-2.0 */\nint f{serial}_entry(int value)\n{{\n\treturn value + {};\n}}\n",
                serial % 97
            );
            if size < entry.len() {
                return comment(size);
            }
            text.push_str(&entry);
            source(&mut text, size, serial, draw);
            pad(text, size)
        }
        Kind::Header => {
            let guard = format!("#ifndef H{serial}\n#define H{serial}\n");
            let end = "#endif\n";
            if size < guard.len() + end.len() {
                return comment(size);
            }
            text.push_str(&guard);
            let inside = size - end.len();
            header(&mut text, inside, serial, draw);
            let mut bytes = pad(text, inside);
            bytes.extend_from_slice(end.as_bytes());
            bytes
        }
        Kind::Text(_) => {
            prose(&mut text, size, draw);
            let mut bytes = text.into_bytes();
            bytes.truncate(size);
            bytes
        }
    }
}

/// A C comment of exactly this size, or white space where not even an empty comment fits.
fn comment(size: usize) -> Vec<u8> {
    match size {
        0..=4 => vec![b'\n'; size],
        _ => [b"/*".as_slice(), &vec![b'-'; size - 5], b"*/\n"].concat(),
    }
}

fn pad(text: String, size: usize) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    debug_assert!(bytes.len() <= size, "{} of {size}", bytes.len());
    bytes.extend_from_slice(&comment(size - bytes.len()));
    bytes
}

fn words(line: &mut String, count: usize, draw: &mut Draw) {
    for number in 0..count {
        if number > 0 {
            line.push(' ');
        }
        let word: &&str = draw.pick(WORDS);
        line.push_str(word);
    }
}

fn while_it_fits(text: &mut String, size: usize, mut piece: impl FnMut(usize) -> String) {
    for number in 0.. {
        let next = piece(number);
        if text.len() + next.len() > size {
            return;
        }
        text.push_str(&next);
    }
}

fn source(text: &mut String, size: usize, serial: u32, draw: &mut Draw) {
    while_it_fits(text, size, |number| {
        let mut piece = String::from("\n/*\n * ");
        words(&mut piece, 6 + draw.below(8), draw);
        piece.push_str("\n */\n");
        let (a, b) = (*draw.pick(WORDS), draw.below(1 << 16));
        piece.push_str(&format!("int f{serial}_{a}_{number}(int {a}_in, int *out)\n{{\n\tint total = {b:#x};\n\n"));
        for _ in 0..2 + draw.below(6) {
            let constant = draw.below(255) + 1;
            piece.push_str(match draw.below(4) {
                0 => "\tif (",
                1 => "\twhile (total > 1000 && ",
                2 => "\tif (!",
                _ => "\tif (total & ",
            });
            piece.push_str(&format!("{a}_in)\n\t\ttotal = (total ^ {constant:#04x}) / {};\n", constant % 7 + 2));
        }
        piece.push_str(&format!(
            "\tif (out)\n\t\t*out = total;\n\treturn total < {b} ? -{} : 0;\n}}\n",
            draw.below(120) + 1
        ));
        piece
    });
}

fn header(text: &mut String, size: usize, serial: u32, draw: &mut Draw) {
    while_it_fits(text, size, |number| {
        let mut piece = String::new();
        let (a, b) = (*draw.pick(WORDS), *draw.pick(WORDS));
        match draw.below(5) {
            0 => {
                piece.push_str("\n/* ");
                words(&mut piece, 5 + draw.below(9), draw);
                piece.push_str(" */\n");
            }
            1 => piece.push_str(&format!("struct h{serial}_{a}_{number} {{\n\tunsigned int {b}_first;\n\tunsigned long {b}_second;\n\tvoid *{b}_third;\n}};\n")),
            _ => piece.push_str(&format!("#define H{serial}_{}_{}_{number}\t\t{:#010x}\n", a.to_uppercase(), b.to_uppercase(), draw.below(1 << 32))),
        }
        piece
    });
}

fn prose(text: &mut String, size: usize, draw: &mut Draw) {
    while text.len() < size {
        let count = 4 + draw.below(10);
        words(text, count, draw);
        text.push_str(if draw.below(6) == 0 { ".\n\n" } else { "\n" });
    }
}
