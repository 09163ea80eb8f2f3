//! A number of a load, or of one part of it: `threads`, `readers.threads`.

use super::parameter::{ApplyError, Parameter, any_value, apply, apply_to, parts};
use fstone_model::Workload;
use std::fmt;

/// A number, and of what. In this order numbers are set: a total is shared out over the number of files that was set before
/// it, and a part has its own number in place of the whole load's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    pub parameter: Parameter,
    /// The group, phase or fileset that it belongs to; `None` when it is the whole load's.
    pub part: Option<String>,
}

impl Target {
    pub const fn whole(parameter: Parameter) -> Self {
        Self { parameter, part: None }
    }

    pub fn of(part: &str, parameter: Parameter) -> Self {
        Self { parameter, part: Some(part.to_owned()) }
    }

    /// Sets it in a load, as `apply` and `apply_to` do.
    ///
    /// # Errors
    /// [`ApplyError`]. The load is unchanged then.
    pub fn apply(&self, workload: &mut Workload, value: u64) -> Result<(), ApplyError> {
        match &self.part {
            Some(part) => apply_to(workload, part, self.parameter, value),
            None => apply(workload, self.parameter, value),
        }
    }

    pub fn is_in(&self, workload: &Workload) -> bool {
        let result = self.apply(&mut workload.clone(), any_value(self.parameter));
        !matches!(result, Err(ApplyError::Absent(_)))
    }

    pub fn parts(&self, workload: &Workload) -> Vec<String> {
        parts(workload, self.parameter)
    }

    /// A value of it as a level of a factor is called: "16 threads", "readers: 16 threads".
    pub fn level(&self, value: u64) -> String {
        let level = self.parameter.level(value);
        self.part.as_ref().map_or_else(|| level.clone(), |part| format!("{part}: {level}"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => write!(formatter, "{part}.{}", self.parameter),
            None => write!(formatter, "{}", self.parameter),
        }
    }
}
