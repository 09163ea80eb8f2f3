//! Values: numbers with units and arithmetic, times, ranges, lists for reads, writes and trims, variables.

use super::{
    job::{Amount, Blocks, Direction, Trims},
    text::Word,
};
use fstone_model::workload::{MAXIMUM_BLOCK_BYTES, Steady};
use std::{cell::Cell, time::Duration};

/// What an option may be, for a message.
pub(super) type Expected = &'static str;

const MAXIMUM_GAP: u64 = 1 << 50;

/// The value of an option, with its variables replaced.
pub(super) struct Value<'v> {
    pub(super) text: Option<&'v str>,
    pub(super) place: &'v Word,
    pub(super) base: Base,
    /// What is wrong with the last number that was read.
    pub(super) why: Cell<Option<String>>,
}

impl Value<'_> {
    pub(super) fn text(&self) -> &str {
        self.text.unwrap_or("")
    }

    pub(super) fn number_of(&self, part: &str) -> Option<u64> {
        explained(part, self.base).map_err(|wrong| self.why.set(Some(wrong))).ok()
    }

    pub(super) fn flag(&self) -> Result<bool, Expected> {
        flag(self.text).ok_or("0 or 1")
    }

    pub(super) fn number(&self) -> Result<u64, Expected> {
        self.number_of(self.text()).ok_or("a number, such as 16 or 4k")
    }

    pub(super) fn up_to(&self, most: u64) -> Result<u64, Expected> {
        self.number().and_then(|number| if number <= most { Ok(number) } else { Err("a smaller number") })
    }

    pub(super) fn percent(&self) -> Result<u32, Expected> {
        self.up_to(100).map(|number| number as u32).map_err(|_| "a number from 0 to 100")
    }

    pub(super) fn amount(&self) -> Result<Amount, Expected> {
        let amount = match self.text().strip_suffix('%') {
            // As in a script of Windows.
            Some(share) => {
                self.number_of(share.trim_end_matches('%')).filter(|share| *share <= 100).map(Amount::Percent)
            }
            None => self.number_of(self.text()).map(Amount::Bytes),
        };
        amount.ok_or("a size such as 64m, or a share such as 50%")
    }

    pub(super) fn seconds(&self) -> Result<Duration, Expected> {
        time(self.text(), Duration::from_secs(1)).ok_or("a time, such as 10, 10s or 5m")
    }

    pub(super) fn microseconds(&self) -> Result<Duration, Expected> {
        time(self.text(), Duration::from_micros(1)).ok_or("a time, such as 100us")
    }

    pub(super) fn rates(&self, expected: Expected) -> Result<[Option<u64>; 3], Expected> {
        let rates = by_direction(&self.text().replace(':', ","), |part| self.number_of(part)).ok_or(expected)?;
        Ok(rates.map(|rate| rate.filter(|rate| *rate > 0)))
    }

    /// The prefix of a log; empty if none is given.
    pub(super) fn prefix(&self) -> Result<String, Expected> {
        let prefix = self.text.filter(|text| *text != "1").unwrap_or("");
        if prefix.contains('\0') { Err("a prefix for the names of files") } else { Ok(prefix.to_owned()) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Base {
    /// What `k` means: 1024, or 1000 with `kb_base=1000`; `ki` means the other one.
    pub(super) kilo: u64,
}

/// A number of bytes, blocks or anything counted: `4k`, `0x1000`, `(1k*3)`.
pub(super) fn number(text: &str, base: Base) -> Option<u64> {
    arithmetic(text, base).and_then(whole).ok()
}

pub(super) fn explained(text: &str, base: Base) -> Result<u64, String> {
    arithmetic(text, base).and_then(whole).map_err(|wrong| match wrong {
        Wrong::TooLong => "an expression has at most 256 characters".to_owned(),
        Wrong::Nothing => "a number is missing at its end".to_owned(),
        Wrong::NoNumber(found) => format!("`{found}` stands where a number should"),
        Wrong::NoUnit(letters) => format!("`{letters}` is not a unit: those are k, m, g, t and p"),
        Wrong::Open => "a `(` is not closed".to_owned(),
        Wrong::Behind(rest) => format!("`{rest}` means nothing behind what stands before it"),
        Wrong::Undefined => "it divides by zero, or is too large".to_owned(),
        Wrong::Negative if text.trim_start().starts_with('-') => "it is below zero".to_owned(),
        Wrong::Negative => {
            "it is a subtraction with a result below zero; a range of blocks is bsrange=, of sizes filesize=".to_owned()
        }
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Wrong<'t> {
    TooLong,
    Nothing,
    NoNumber(char),
    NoUnit(&'t str),
    Open,
    Behind(&'t str),
    Undefined,
    Negative,
}

fn whole<'t>(value: f64) -> Result<u64, Wrong<'t>> {
    // All whole numbers up to this are exact in a double; sizes beyond are no longer sizes.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value {
        _ if value < 0.0 => Err(Wrong::Negative),
        _ if value < MOST => Ok(value as u64),
        _ => Err(Wrong::Undefined),
    }
}

/// `0`, `1`, or what means them.
pub(super) fn flag(text: Option<&str>) -> Option<bool> {
    match text {
        None | Some("1" | "true" | "on" | "yes" | "y") => Some(true),
        Some("0" | "false" | "off" | "no" | "n") => Some(false),
        Some(_) => None,
    }
}

/// Bytes: text in double quotes, `0x` and digits in the order in which they are written, or decimal numbers, the lowest byte first, in a row.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let is_hexadecimal = rest.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
        if let Some(quoted) = rest.strip_prefix('"') {
            let (inside, behind) = quoted.split_once('"')?;
            all.extend(inside.bytes());
            rest = behind;
        } else if is_hexadecimal {
            let digits = &rest[2..];
            let mut length = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            if digits[length..].starts_with(['x', 'X']) && digits[..length].ends_with('0') {
                // The zero belongs to the next number.
                length -= 1;
            }
            let (digits, behind) = digits.split_at(length);
            let odd = digits.len() % 2;
            let byte = |at: usize| u8::from_str_radix(&digits[at.saturating_sub(odd)..at + 2 - odd], 16).ok();
            all.extend((0..digits.len() + odd).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?);
            if digits.is_empty() {
                return None;
            }
            rest = behind;
        } else {
            let sign = usize::from(rest.starts_with(['-', '+']));
            let mut length = sign + rest[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - sign);
            if rest[length..].starts_with(['x', 'X']) && rest[..length].ends_with('0') {
                length -= 1;
            }
            let (number, behind) = rest.split_at(length);
            let little = number.parse::<i32>().ok()?.to_le_bytes();
            let used = little.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
            all.extend(&little[..used]);
            rest = behind;
        }
    }
    Some(all).filter(|all| !all.is_empty())
}

pub(super) fn decimal(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Thirty years; nobody waits longer.
const LONGEST_TIME: Duration = Duration::from_secs(30 * 366 * 86_400);

/// A time, to the microsecond; a number without unit counts in `unit`. `1h30m` and `hh:mm:ss` are times, too.
pub(super) fn time(text: &str, unit: Duration) -> Option<Duration> {
    let exact = time_of_any_length(text, unit).filter(|time| *time <= LONGEST_TIME)?;
    Some(Duration::from_micros(u64::try_from(exact.as_micros()).ok()?))
}

fn time_of_any_length(text: &str, unit: Duration) -> Option<Duration> {
    if text.contains(':') {
        let mut total = 0.0;
        for part in text.split(':') {
            total = total * 60.0 + decimal(part).filter(|part| *part >= 0.0)?;
        }
        return Duration::try_from_secs_f64(total).ok();
    }
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let value = decimal(&rest[..digits])?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let one = match rest[..letters].to_ascii_lowercase().as_str() {
            "" => unit,
            "us" | "usec" => Duration::from_micros(1),
            "ms" | "msec" => Duration::from_millis(1),
            "s" | "sec" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            "d" => Duration::from_secs(86_400),
            _ => return None,
        };
        rest = &rest[letters..];
        total = total.checked_add(Duration::try_from_secs_f64(value * one.as_secs_f64()).ok()?)?;
    }
    Some(total)
}

/// `a`, or `a-b`, the smaller first.
pub(super) fn range(text: &str, base: Base) -> Option<(u64, u64)> {
    let (low, high) = match text.split_once(['-', ':']) {
        Some((low, high)) => (number(low.trim(), base)?, number(high.trim(), base)?),
        None => (number(text, base)?, number(text, base)?),
    };
    Some((low.min(high), low.max(high)))
}

/// For reads, writes and trims: what is left out is the one before it, and an empty part is `None`.
pub(super) fn by_direction<T: Clone>(text: &str, mut read: impl FnMut(&str) -> Option<T>) -> Option<[Option<T>; 3]> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return None;
    }
    let mut values: [Option<T>; 3] = [None, None, None];
    for (value, part) in values.iter_mut().zip(&parts) {
        if !part.is_empty() {
            *value = Some(read(part)?);
        }
    }
    for index in parts.len()..3 {
        values[index] = values[index - 1].clone();
    }
    Some(values)
}

/// The value with `${NAME}` replaced from the environment, and `$ncpus` and its like by this machine's numbers.
pub(super) fn expanded(text: &str, mut variable: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some((name, behind)) = after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            out.push_str(&variable(name).unwrap_or_default());
            rest = behind;
            continue;
        }
        let length = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, behind) = after.split_at(length);
        match name {
            "pagesize" | "mb_memory" | "ncpus" => out.push_str(&variable(&format!("${name}")).unwrap_or_default()),
            // `$jobname` and its like belong to file names.
            _ => {
                out.push('$');
                out.push_str(name);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The value of an expression of numbers with units, `+ - * / % ^` and parentheses.
fn arithmetic(text: &str, base: Base) -> Result<f64, Wrong<'_>> {
    /// Nobody writes longer ones, and each opening parenthesis takes a frame of the stack.
    const LONGEST: usize = 256;
    if text.len() > LONGEST {
        return Err(Wrong::TooLong);
    }
    let mut parser = Arithmetic { rest: text, base };
    let value = parser.sum()?;
    let behind = parser.rest.trim();
    if behind.is_empty() { Ok(value) } else { Err(Wrong::Behind(behind)) }
}

/// `k` and `ki` are 1024 and 1000, or 1000 and 1024.
const OTHER: u64 = 1024 + 1000;

fn no_number<'t>(rest: &str) -> Wrong<'t> {
    rest.chars().next().map_or(Wrong::Nothing, Wrong::NoNumber)
}

struct Arithmetic<'t> {
    rest: &'t str,
    base: Base,
}

impl<'t> Arithmetic<'t> {
    fn accept(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(sign);
        self.rest = found.unwrap_or(rest);
        found.is_some()
    }

    fn sum(&mut self) -> Result<f64, Wrong<'t>> {
        let mut value = self.product()?;
        loop {
            if self.accept('+') {
                value += self.product()?;
            } else if self.accept('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Wrong<'t>> {
        let mut value = self.power()?;
        loop {
            if self.accept('*') {
                value *= self.power()?;
            } else if self.accept('/') {
                value /= self.power()?;
            } else if self.accept('%') {
                value %= self.power()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<f64, Wrong<'t>> {
        let value = self.unit()?;
        if self.accept('^') { Ok(value.powf(self.power()?)) } else { Ok(value) }
    }

    fn unit(&mut self) -> Result<f64, Wrong<'t>> {
        if self.accept('(') {
            let value = self.sum()?;
            return match self.rest.trim().is_empty() {
                true => Err(Wrong::Open),
                false if self.accept(')') => self.with_unit(value),
                false => Err(Wrong::Behind(self.rest.trim())),
            };
        }
        if self.accept('-') {
            return Ok(-self.unit()?);
        }
        let rest = self.rest.trim_start();
        if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            self.rest = &hex[end..];
            return u64::from_str_radix(&hex[..end], 16).map(|value| value as f64).map_err(|_| no_number(rest));
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let value = decimal(&rest[..end]).ok_or_else(|| no_number(rest))?;
        self.rest = &rest[end..];
        self.with_unit(value)
    }

    fn with_unit(&mut self, value: f64) -> Result<f64, Wrong<'t>> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (letters, rest) = self.rest.split_at(end);
        self.rest = rest;
        let lower = letters.to_ascii_lowercase();
        let prefix = lower.strip_suffix('b').unwrap_or(&lower);
        let (prefix, other) = match prefix.strip_suffix('i') {
            Some(prefix) if !prefix.is_empty() => (prefix, true),
            _ => (prefix, false),
        };
        let power = match prefix {
            "" => 0,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            "p" => 5,
            _ => return Err(Wrong::NoUnit(letters)),
        };
        let kilo = if other { OTHER - self.base.kilo } else { self.base.kilo };
        Ok(value * (kilo as f64).powi(power))
    }
}

/// Reads and writes; trims are not.
pub(super) fn take_two<T: Clone>(to: &mut [T; 2], from: [Option<T>; 3]) {
    for (to, from) in to.iter_mut().zip(from) {
        if let Some(value) = from {
            *to = value;
        }
    }
}

pub(super) fn is_block(bytes: &u64) -> bool {
    (1..=MAXIMUM_BLOCK_BYTES).contains(bytes)
}

/// Multiples of the smaller, and what is left of the larger: as in fio a size is drawn from the smaller to the sum of both, rounded down to a
/// multiple, and at most the larger.
pub(super) fn between(low: u64, high: u64) -> Blocks {
    /// With more multiples, what is left of the larger comes in less than one of a thousand blocks.
    const MOST: u64 = 1000;
    match (high / low, high % low) {
        (1, 0) => Blocks::Fixed(low),
        (count, rest @ 1..) if count <= MOST => {
            let multiples = (1..=count).map(|number| (number * low, low as u32));
            Blocks::Split(multiples.chain([(high, rest as u32)]).collect())
        }
        _ => Blocks::Range(low, high),
    }
}

/// Any size of a range, as far as a table has room.
pub(super) fn odd_between((low, high): (u64, u64)) -> Blocks {
    const STEPS: u64 = 999;
    if low == high {
        return Blocks::Fixed(low);
    }
    let at = |step: u64| low + (u128::from(high - low) * u128::from(step) / u128::from(STEPS)) as u64;
    let mut sizes: Vec<(u64, u32)> = (0..=STEPS).map(|step| (at(step), 1)).collect();
    sizes.dedup();
    Blocks::Split(sizes)
}

/// `4k/10:64k/50:32k`: shares that are left out share what is left.
pub(super) fn split(text: &str, base: Base) -> Option<Blocks> {
    let mut sizes: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':').filter(|part| !part.is_empty()) {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share =
            if share.is_empty() { None } else { Some(share.parse::<u32>().ok().filter(|share| *share <= 100)?) };
        sizes.push((number(size, base).filter(is_block)?, share));
    }
    let given: u32 = sizes.iter().filter_map(|(_, share)| *share).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if sizes.is_empty() || given > 100 || (open == 0 && given != 100) {
        return None;
    }
    // In parts of a percent, so that what is left divides evenly.
    let weight = |share: Option<u32>| share.map_or(100 - given, |share| share * open.max(1));
    let sizes: Vec<(u64, u32)> =
        sizes.into_iter().map(|(size, share)| (size, weight(share))).filter(|(_, weight)| *weight > 0).collect();
    match sizes.as_slice() {
        [] => None,
        [(size, _)] => Some(Blocks::Fixed(*size)),
        _ => Some(Blocks::Split(sizes)),
    }
}

pub(super) fn direction(text: &str, base: Base) -> Result<Direction, Expected> {
    let (word, behind) = text.split_once(':').map_or((text, None), |(word, behind)| (word, Some(behind)));
    let (reads, writes, random, trims) = match word {
        "read" => (true, false, false, Trims::None),
        "write" => (false, true, false, Trims::None),
        "rw" | "readwrite" => (true, true, false, Trims::None),
        "randread" => (true, false, true, Trims::None),
        "randwrite" => (false, true, true, Trims::None),
        "randrw" => (true, true, true, Trims::None),
        "trim" => (false, true, false, Trims::Only),
        "randtrim" => (false, true, true, Trims::Only),
        "trimwrite" => (false, true, false, Trims::First),
        "randtrimwrite" => (false, true, true, Trims::First),
        _ => return Err("read, write, rw, randread, randwrite, randrw, trim, randtrim, trimwrite or randtrimwrite"),
    };
    let (mut gap, mut burst) = (0, 1);
    match behind {
        None => {}
        Some(behind) if random => {
            let number = number(behind, base).and_then(|number| u32::try_from(number).ok());
            burst = number.filter(|number| *number > 0).ok_or("a number of operations from each place, such as 8")?;
        }
        Some(behind) => {
            let (sign, size) = behind.strip_prefix('-').map_or((1, behind), |size| (-1, size));
            let bytes = number(size, base).filter(|bytes| *bytes <= MAXIMUM_GAP);
            gap = sign * bytes.ok_or("a size to skip or, with `-`, to go back, such as 8k or -8k")?.cast_signed();
        }
    }
    Ok(Direction { reads, writes, random, trims, gap, run: 1, burst })
}

/// What is judged and its limit, such as `iops_slope:0.3%`.
pub(super) fn steady(text: &str, base: Base) -> Result<Steady, Expected> {
    const EXPECTED: Expected = "iops, bw, iops_slope or bw_slope with a limit, such as iops:2% or bw_slope:10k";
    let (word, limit) = text.split_once(':').ok_or(EXPECTED)?;
    let (bytes, slope) = match word {
        "iops" => (false, false),
        "iops_slope" => (false, true),
        "bw" => (true, false),
        "bw_slope" => (true, true),
        _ => return Err(EXPECTED),
    };
    let relative = limit.ends_with('%');
    let number = match limit.strip_suffix('%') {
        Some(percent) => decimal(percent).map(|percent| percent / 100.0),
        None if bytes => number(limit, base).map(|bytes| bytes as f64),
        None => decimal(limit),
    };
    let limit = number.filter(|limit| *limit > 0.0).ok_or(EXPECTED)?;
    Ok(Steady { bytes, slope, limit, relative, window: Duration::ZERO, ramp: Duration::ZERO })
}

/// Names with `:` between them, where none is meant by a backslash before it.
pub(super) fn separated(text: &str) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            ':' if !escaped => names.push(String::new()),
            c => {
                escaped = false;
                names.last_mut().expect("one is always there").push(c);
            }
        }
    }
    let fits = |name: &String| !name.is_empty() && !name.contains('\0');
    names.iter().all(fits).then_some(names)
}

/// `0,2-3` as a list.
pub(super) fn cpus(text: &str) -> Option<Vec<u32>> {
    /// What the kernel's sets of CPUs hold.
    const MOST: u32 = 1024;
    let mut all = Vec::new();
    for part in text.split([',', ':']).map(str::trim) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.parse::<u32>().ok()?, high.parse::<u32>().ok()?);
        if low > high || high >= MOST {
            return None;
        }
        all.extend(low..=high);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Base = Base { kilo: 1024 };

    #[test]
    fn units_are_those_of_fio() {
        for (text, value) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4KB", 4096),
            ("4ki", 4000),
            ("1m", 1 << 20),
            ("0x1000", 4096),
            ("1.5k", 1536),
            ("(1k*3)", 3072),
            ("(2+3)*4k", 20480),
            ("8*16", 128),
            ("2^10", 1024),
        ] {
            assert_eq!(number(text, BASE), Some(value), "{text}");
        }
        assert_eq!(number("4k", Base { kilo: 1000 }), Some(4000));
        assert_eq!(number("4ki", Base { kilo: 1000 }), Some(4096));
        for wrong in ["", "k", "4x", "4kk", "(4", "4)", "-1", "1/0", "4 k k"] {
            assert_eq!(number(wrong, BASE), None, "{wrong}");
        }
    }

    #[test]
    fn times_have_units_of_their_own() {
        let second = Duration::from_secs(1);
        for (text, millis) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("150ms", 150),
            ("00:01:30", 90_000),
        ] {
            assert_eq!(time(text, second), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(time("2000", Duration::from_micros(1)), Some(Duration::from_millis(2)));
        for wrong in ["", "x", "10x", "-1"] {
            assert_eq!(time(wrong, second), None, "{wrong}");
        }
    }

    #[test]
    fn variables_are_replaced() {
        let variable = |name: &str| match name {
            "SIZE" => Some("64m".to_owned()),
            "$ncpus" => Some("8".to_owned()),
            _ => None,
        };
        assert_eq!(expanded("${SIZE}/${NONE}x", variable), "64m/x");
        assert_eq!(expanded("$ncpus*2 $jobname.$jobnum", variable), "8*2 $jobname.$jobnum");
        assert_eq!(expanded("a$", variable), "a$");
    }

    #[test]
    fn what_is_left_out_is_as_the_one_before() {
        assert_eq!(by_direction("4k,8k", |part| number(part, BASE)), Some([Some(4096), Some(8192), Some(8192)]));
        assert_eq!(by_direction(",8k,", |part| number(part, BASE)), Some([None, Some(8192), None]));
        assert_eq!(by_direction("1,2,3,4", |part| number(part, BASE)), None);
    }

    /// What fio 3.33 wrote.
    #[test]
    fn bytes_are_those_that_fio_writes() {
        assert_eq!(bytes("\"abcd\"-120xdeadface"), Some(b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce".to_vec()));
        for (text, wanted) in [
            ("5", &[5][..]),
            ("300", &[0x2c, 1]),
            ("70000", &[0x70, 0x11, 1]),
            ("0x123", &[1, 0x23]),
            ("-1", &[0xff; 4]),
            ("0xff0x14", &[0xff, 0x14]),
            ("0", &[0]),
        ] {
            assert_eq!(bytes(text).as_deref(), Some(wanted), "{text}");
        }
        for wrong in ["", "'file'", "\"abc", "0x", "x", "99999999999", "0xé", "é"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
