//! One way of doing a figure's work.

/// Why a side was not measured: a tool is missing, or this user may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Not here: it is left out, and the results say so.
    Absent(String),
    Failed(String),
}

impl Trouble {
    pub(crate) fn failed(message: impl std::fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }
}

/// One measurement, in the figure's unit.
pub(crate) type Measured = Result<f64, Trouble>;

/// One way of doing the work, as often as asked.
pub(crate) struct Side<'a> {
    /// "bare", "fstone", "fio", "sysbench", with what distinguishes two of them.
    pub(crate) name: String,
    pub(crate) measure: Box<dyn FnMut() -> Measured + 'a>,
}

impl<'a> Side<'a> {
    pub(crate) fn new(name: impl Into<String>, measure: impl FnMut() -> Measured + 'a) -> Self {
        Self { name: name.into(), measure: Box::new(measure) }
    }
}
